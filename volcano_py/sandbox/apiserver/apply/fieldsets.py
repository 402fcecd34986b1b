"""Sets of fields in FieldsV1 form, and how they are computed from objects.

A set is a nested dict: keys are path elements (`f:name`, `k:{"name":"c"}`, `v:"x"`); an empty dict is a member, and
`.` marks a member that has members below it. Kubernetes: structured-merge-diff's fieldpath and typed packages.
"""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver.schema.types import Type, scalar

Set = dict[str, Any]

_ANY = scalar("any")


def child_type(type_: Type, key: str) -> Type:
    """The type of a field of a map-like value."""
    if type_.kind == "struct":
        field = type_.fields.get(key)
        return field.type if field is not None else _ANY
    if type_.kind == "map" and type_.elem is not None:
        return type_.elem
    return _ANY


def is_map(type_: Type, value: Any) -> bool:
    """Whether the value's fields are owned one by one."""
    return value.__class__ is dict and not type_.atomic and type_.kind in ("struct", "map", "any")


def is_list(type_: Type, value: Any) -> bool:
    """Whether the value's items are owned one by one."""
    return value.__class__ is list and type_.kind == "list" and not type_.atomic


def element(type_: Type, item: Any) -> str:
    """The path element of a list item."""
    if type_.keys:
        keys = {}
        if isinstance(item, dict):
            for key in type_.keys:
                value = item.get(key)
                if value is None:
                    value = _key_default(type_, key)
                if value is not None:
                    keys[key] = value
        return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()
    return "v:" + orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()


def _key_default(type_: Type, key: str) -> Any:
    # protocol is the only key of built-in lists with a default
    return "TCP" if key == "protocol" else None


def from_object(type_: Type, value: Any) -> Set:
    """All fields of an applied configuration (members: leaves, items, and entries of maps)."""
    out: Set = {}
    if is_map(type_, value):
        for key, item in value.items():
            inner_type = child_type(type_, key)
            inner = from_object(inner_type, item) if item is not None else {}
            known = type_.kind == "struct" and key in type_.fields
            if inner and not known:
                inner["."] = {}
            out["f:" + key] = inner
    elif is_list(type_, value):
        assert type_.elem is not None
        for item in value:
            inner = from_object(type_.elem, item) if type_.keys else {}
            if inner:
                inner["."] = {}
            out[element(type_, item)] = inner
    return out


def compare(type_: Type, old: Any, new: Any) -> tuple[Set, Set]:
    """What changed between two values: (added or modified, removed)."""
    changed: Set = {}
    removed: Set = {}
    _compare(type_, old, new, changed, removed)
    return changed, removed


_MISSING = object()


def _compare(type_: Type, old: Any, new: Any, changed: Set, removed: Set) -> None:
    if new.__class__ is dict:
        olds = old if old.__class__ is dict else {}
        for key, item in new.items():
            before = olds.get(key, _MISSING)
            if before is _MISSING:
                changed["f:" + key] = _all(child_type(type_, key), item)
            elif before is not item and before != item:
                _child(child_type(type_, key), "f:" + key, before, item, changed, removed)
        for key, item in olds.items():
            if key not in new:
                removed["f:" + key] = _all(child_type(type_, key), item)
    elif new.__class__ is list:
        assert type_.elem is not None
        olds_by = {element(type_, item): item for item in (old if old.__class__ is list else [])}
        seen = set()
        for item in new:
            name = element(type_, item)
            seen.add(name)
            before = olds_by.get(name, _MISSING)
            if before is _MISSING:
                changed[name] = _all(type_.elem, item) if type_.keys else {}
            elif before != item:
                _child(type_.elem, name, before, item, changed, removed)
        for name, item in olds_by.items():
            if name not in seen:
                removed[name] = _all(type_.elem, item) if type_.keys else {}


def _child(type_: Type, name: str, old: Any, new: Any, changed: Set, removed: Set) -> None:
    granular_new = is_map(type_, new) or is_list(type_, new)
    granular_old = is_map(type_, old) or is_list(type_, old)
    if (granular_new or granular_old) and (granular_new or new is None) and (granular_old or old is None):
        if not new and not old:
            changed[name] = {}
            return
        below: Set = {}
        gone: Set = {}
        if granular_new:
            _compare(type_, old, new, below, gone)
        else:
            _compare(type_, old, [] if isinstance(old, list) else {}, below, gone)
        if below:
            changed[name] = below
        if gone:
            removed[name] = gone
        return
    changed[name] = {}


def _all(type_: Type, value: Any) -> Set:
    """The set of a new value: itself and everything below."""
    out: Set = {}
    if is_map(type_, value):
        for key, item in value.items():
            out["f:" + key] = _all(child_type(type_, key), item)
    elif is_list(type_, value):
        assert type_.elem is not None
        for item in value:
            out[element(type_, item)] = _all(type_.elem, item) if type_.keys else {}
    if out:
        out["."] = {}
    return out


# --- algebra ---------------------------------------------------------------------------------------------------------


def union(left: Set, right: Set) -> Set:
    """The union. A leaf that is a node with members in the other set becomes that node's own membership."""
    if not left:
        return {**right, ".": {}} if right and "." not in right else dict(right)
    if not right:
        return left if "." in left else {**left, ".": {}}
    return union_top(left, right)


def union_top(left: Set, right: Set) -> Set:
    """The union of two whole sets (where an empty set has no members)."""
    out = dict(left)
    for key, inner in right.items():
        if key in out and key != ".":
            out[key] = union(out[key], inner)
        else:
            out[key] = inner
    return out


def difference(left: Set, right: Set) -> Set:
    """Members of left that are not members of right."""
    out: Set = {}
    for key, inner in left.items():
        if key == ".":
            if "." not in right:
                out["."] = {}
            continue
        if key not in right:
            out[key] = inner
            continue
        other = right[key]
        member_left = not inner or "." in inner
        member_right = not other or "." in other
        below = difference({k: v for k, v in inner.items() if k != "."}, {k: v for k, v in other.items() if k != "."})
        member = member_left and not member_right
        if below:
            out[key] = {**below, ".": {}} if member else below
        elif member:
            out[key] = {}
    return out


def intersection(left: Set, right: Set) -> Set:
    """The intersection."""
    out: Set = {}
    for key, inner in left.items():
        if key == "." or key not in right:
            continue
        other = right[key]
        member = (not inner or "." in inner) and (not other or "." in other)
        below = intersection(inner, other)
        if below:
            out[key] = {**below, ".": {}} if member else below
        elif member:
            out[key] = {}
    return out


def remove_paths(fields: Set, paths: tuple[tuple[str, ...], ...]) -> Set:
    """The set without what lies at and below the given paths."""
    for path in paths:
        fields = _remove(fields, path)
    return fields


def _remove(fields: Set, path: tuple[str, ...]) -> Set:
    head = path[0]
    if head not in fields:
        return fields
    out = dict(fields)
    if len(path) == 1:
        del out[head]
        return out
    inner = _remove(fields[head], path[1:])
    if inner is fields[head]:
        return fields
    if inner and inner.keys() != {"."}:
        out[head] = inner
    elif "." in inner:
        out[head] = {}
    else:
        del out[head]
    return out
