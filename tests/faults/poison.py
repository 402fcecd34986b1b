"""JSON of objects that an API server may hold and a decoder cannot read: nested too deep, or of wrong types."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

DEPTHS = (100, 1_100, 10_000)
"""msgspec reads the first and raises RecursionError for the others."""

Manifest = dict[str, Any]
_MARK = "@deep@"


def deep(manifest: Manifest, depth: int, *path: str | int) -> bytes:
    """The manifest with `depth` nested objects at `path` (default: metadata.managedFields[0].fieldsV1)."""
    marked = copy.deepcopy(manifest)
    if path:
        _set(marked, path, _MARK)
    else:
        marked["metadata"]["managedFields"] = [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": _MARK}]
    nested = '{"f:a":' * depth + "{}" + "}" * depth
    return json.dumps(marked).replace(f'"{_MARK}"', nested).encode()


def wrong_types(manifest: Manifest) -> Iterator[tuple[str, bytes]]:
    """(path, JSON) with one value at a time replaced by one of another JSON type; the identity stays readable."""
    for path, value in _values(manifest, ()):
        if path[0] in ("apiVersion", "kind") or path in (("metadata",), *(("metadata", f) for f in _IDENTITY)):
            continue
        for other in ("text", 7, True, ["x"], {"x": "y"}):
            if type(other) is not type(value):
                changed = copy.deepcopy(manifest)
                _set(changed, path, other)
                yield ".".join(map(str, path)), json.dumps(changed).encode()


_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def _values(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, (*path, index))


def _set(manifest: Any, path: tuple[str | int, ...], value: Any) -> None:
    for key in path[:-1]:
        manifest = manifest[key]
    manifest[path[-1]] = value
