"""Writes enums.json: the enumerated values and defaults of fields of the built-in types, as in OpenAPI.

Go marks them only in comments (`+enum` on a type, `+default=` and `+required` on a field), so this reads the sources:
`python enums.py $(go env GOMODCACHE)/k8s.io/api@v0.36.1 $(go env GOMODCACHE)/k8s.io/api@v0.37.2 > ../enums.json`.
The structs that only the second has come with their required fields, which no OpenAPI definition states here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_ENUM = re.compile(r"((?:^//.*\n)+)^type (\w+) string$", re.MULTILINE)
_CONSTANT = re.compile(r'^\s*\w+\s+(\w+)\s*=\s*"([^"]*)"', re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'((?:^\t//.*\n)*)^\t\w+\s+(\[\]|\*)?(?:\w+\.)?(\w+)\s+`[^`]*json:"([^",]+)', re.MULTILINE)


_REQUIRED = re.compile(r"^\t//\s*\+required\s*$", re.MULTILINE)


def package(source: str, required: bool = False) -> dict[str, dict[str, object]]:
    """`{struct: {field: {"enum": […], "default": …}}}` of one package; with `required`, also
    `{"required": true}`."""
    enums: dict[str, list[str]] = {name: [] for comment, name in _ENUM.findall(source) if "+enum" in comment}
    for name, value in _CONSTANT.findall(source):
        if name in enums:
            enums[name].append(value)
    out: dict[str, dict[str, object]] = {}
    for struct, body in _STRUCT.findall(source):
        rows: dict[str, object] = {}
        for comment, many, kind, field in _FIELD.findall(body):
            row: dict[str, object] = {}
            if enums.get(kind):
                row["items" if many == "[]" else "enum"] = sorted(set(enums[kind]))
            default = re.search(r"\+default=(.*)", comment)
            if default and not default[1].startswith("ref("):
                row["default"] = json.loads(default[1])
            if required and _REQUIRED.search(comment):
                row["required"] = True
            if row:
                rows[field] = row
        if rows:
            out[struct] = rows
    return out


def _packages(folder: str) -> Iterator[tuple[str, str]]:
    """The prefix of the structs of each package, and its source."""
    for types in sorted(Path(folder).glob("*/*/types.go")):
        yield ".".join(types.parent.parts[-2:]), types.read_text()


def main() -> None:
    table: dict[str, dict[str, object]] = {}
    known: set[str] = set()
    for prefix, source in _packages(sys.argv[1]):
        known |= {f"{prefix}.{struct}" for struct, _ in _STRUCT.findall(source)}
        table |= {f"{prefix}.{struct}": rows for struct, rows in package(source).items()}
    for prefix, source in _packages(sys.argv[2]):
        later = {f"{prefix}.{struct}": rows for struct, rows in package(source, required=True).items()}
        table |= {name: rows for name, rows in later.items() if name not in known}
    json.dump(table, sys.stdout, sort_keys=True, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
