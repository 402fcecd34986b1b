"""The subset of JSONPath for printer columns: fields, indexes, wildcards, slices and simple filters.

Kubernetes: k8s.io/client-go/util/jsonpath.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.\.|\.?\*|\.([A-Za-z0-9_\-$/]+(?:\\\.[A-Za-z0-9_\-$/]+)*)|\['([^']+)'\]|\["([^"]+)"\]|\[(\*)\]|\[(-?\d+)\]
    |\[(-?\d*):(-?\d*)\]|\[\?\(\s*@((?:\.[\w\-]+)+)\s*(==|!=|<=|>=|<|>)?\s*([^)]*?)\s*\)\]""",
    re.VERBOSE,
)

Step = tuple[str, Any]


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Step, ...]:
    """The steps of a path such as `.status.conditions[?(@.type=="Ready")].status`; ValueError when malformed."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = text.removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ValueError(f"cannot parse the JSONPath {path!r} at {text[at:]!r}")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    name, quoted, double, star, index, start, stop, field, operator, literal = match.groups()
    if name or quoted or double:
        return "field", (name or quoted or double).replace("\\.", ".")
    if star or match.group(0) in ("*", ".*"):
        return "all", None
    if index is not None:
        return "index", int(index)
    if start is not None:
        return "slice", slice(int(start) if start else None, int(stop) if stop else None)
    if field:
        return "filter", (tuple(field[1:].split(".")), operator or "", _literal(literal))
    return "all", None


def _literal(text: str) -> Any:
    if text[:1] in "\"'" and text:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def find(path: str, value: Any) -> list[Any]:
    """All values at a path; none for missing fields."""
    found = [value]
    for kind, argument in compiled(path):
        following: list[Any] = []
        for item in found:
            if kind == "field":
                if isinstance(item, dict) and argument in item:
                    following.append(item[argument])
            elif kind == "all":
                following.extend(item if isinstance(item, list) else item.values() if isinstance(item, dict) else [])
            elif kind == "index":
                if isinstance(item, list) and -len(item) <= argument < len(item):
                    following.append(item[argument])
            elif kind == "slice":
                following.extend(item[argument] if isinstance(item, list) else [])
            elif isinstance(item, list):
                following.extend(row for row in item if _holds(row, *argument))
        found = following
    return found


def _holds(row: Any, field: tuple[str, ...], operator: str, literal: Any) -> bool:
    for part in field:
        if not isinstance(row, dict) or part not in row:
            return False
        row = row[part]
    if not operator:
        return True
    if operator == "==":
        return bool(row == literal)
    if operator == "!=":
        return bool(row != literal)
    try:
        return bool({"<": row < literal, ">": row > literal, "<=": row <= literal, ">=": row >= literal}[operator])
    except TypeError:
        return False
