"""Values of an object by the dotted paths in causes."""

from __future__ import annotations

import re
from typing import Any

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[([^\]]+)\]")


def value_at(obj: Any, path: str, missing: Any = None) -> Any:
    """The value at `spec.tasks[0].name`; keys with dots are found by trying the longest match."""
    for match in _PART.finditer(path):
        name, index, key = match.groups()
        if index is not None and isinstance(obj, list):
            if int(index) >= len(obj):
                return missing
            obj = obj[int(index)]
            continue
        name = name or key or index
        if not isinstance(obj, dict) or name not in obj:
            return missing
        obj = obj[name]
    return obj
