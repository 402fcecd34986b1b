"""Writes enums.json: the enumerated values and defaults of fields of the built-in types, as in OpenAPI.

Go marks them only in comments (`+enum` on a type, `+default=` on a field), so this reads the sources:
`python enums.py $(go env GOMODCACHE)/k8s.io/api@v0.36.1 > ../enums.json`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_ENUM = re.compile(r"((?:^//.*\n)+)^type (\w+) string$", re.MULTILINE)
_CONSTANT = re.compile(r'^\s*\w+\s+(\w+)\s*=\s*"([^"]*)"', re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'((?:^\t//.*\n)*)^\t\w+\s+(\[\]|\*)?(?:\w+\.)?(\w+)\s+`[^`]*json:"([^",]+)', re.MULTILINE)


def package(source: str) -> dict[str, dict[str, object]]:
    """`{struct: {field: {"enum": […], "default": …}}}` of one package."""
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
            if row:
                rows[field] = row
        if rows:
            out[struct] = rows
    return out


def main() -> None:
    table = {}
    for types in sorted(Path(sys.argv[1]).glob("*/*/types.go")):
        prefix = ".".join(types.parent.parts[-2:])
        for struct, rows in package(types.read_text()).items():
            table[f"{prefix}.{struct}"] = rows
    json.dump(table, sys.stdout, sort_keys=True, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
