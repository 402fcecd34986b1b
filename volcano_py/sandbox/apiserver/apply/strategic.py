"""Strategic merge patch of built-in kinds, with each field's patch strategy and merge key. Kubernetes:
apimachinery's strategicpatch.

Supports the directives `$patch`, `$retainKeys`, `$setElementOrder/…` and `$deleteFromPrimitiveList/…`, and keeps
apimachinery's order of elements.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.schema.types import Field, Type

_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_DELETE_LIST, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


class StrategicError(ValueError):
    """The patch is malformed."""


def apply(original: dict[str, Any], patch: dict[str, Any], type_: Type) -> dict[str, Any]:
    """A new object; raises StrategicError."""
    return _merge_map(original, patch, type_) or {}


def _merge_map(original: dict[str, Any] | None, patch: dict[str, Any], type_: Type | None) -> dict[str, Any] | None:
    original = dict(original or {})
    directive = patch.get(_DIRECTIVE)
    if directive is not None:
        patch = {key: value for key, value in patch.items() if key != _DIRECTIVE}
        if directive == "replace":
            cleaned: dict[str, Any] = _clean(patch)
            return cleaned
        if directive == "delete":
            return {}
        if directive != "merge":
            raise StrategicError(f"Unknown patch type found: {directive}")
    retain = patch.get(_RETAIN)
    if retain is not None:
        if not isinstance(retain, list):
            raise StrategicError(f"invalid format for {_RETAIN}")
        original = {key: value for key, value in original.items() if key in retain}
    for key, value in patch.items():
        if key == _RETAIN:
            continue
        if key.startswith(_DELETE_LIST):
            name = key[len(_DELETE_LIST) :]
            if isinstance(original.get(name), list):
                original[name] = [item for item in original[name] if item not in value]
            continue
        if key.startswith(_ORDER):
            continue
        field = _field(type_, key)
        if value is None:
            original.pop(key, None)
        elif isinstance(value, dict):
            merges = field is None or "replace" not in field.strategy
            inner = field.type if field else None
            if inner is not None and inner.kind == "map":
                inner = None if inner.elem is None or inner.elem.kind != "struct" else _as_struct(inner)
            if isinstance(original.get(key), dict) and merges:
                original[key] = _merge_map(original[key], value, inner)
            elif isinstance(value.get(_DIRECTIVE), str):
                original[key] = _merge_map({}, value, inner)
            else:
                original[key] = _merge_map({}, value, inner)
        elif isinstance(value, list) and field is not None and "merge" in field.strategy:
            original[key] = _merge_list(original.get(key) or [], value, field)
        else:
            original[key] = value
    for key, order in patch.items():
        if key.startswith(_ORDER):
            _reorder(original, key[len(_ORDER) :], order, patch, type_)
    return original


def _as_struct(map_type: Type) -> Type:
    made = Type("map")
    made.elem = map_type.elem
    return made


def _field(type_: Type | None, key: str) -> Field | None:
    if type_ is None:
        return None
    if type_.kind == "map" and type_.elem is not None:
        return Field(key, type_.elem, "e", 0, True)
    return type_.fields.get(key)


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _clean(item)
            for key, item in value.items()
            if item is not None and not key.startswith(("$patch", "$retainKeys", _DELETE_LIST, _ORDER))
        }
    return value


def _merge_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    key = field.merge_key
    if not key:
        merged = list(original)
        merged.extend(item for item in patch if item not in merged)
        return _ordered(merged, patch, original, key)
    elem = field.type.elem
    plain: list[dict[str, Any]] = []
    merged = list(original)
    for item in patch:
        if not isinstance(item, dict):
            raise StrategicError(f"expected an object with key {key} in {field.name}")
        directive = item.get(_DIRECTIVE)
        if directive == "replace":
            return [_clean(rest) for rest in patch if isinstance(rest, dict) and _DIRECTIVE not in rest]
        if directive == "delete":
            if key not in item:
                raise StrategicError(
                    f"delete patch type with no merge key: map: {item} does not contain declared merge key: {key}"
                )
            merged = [row for row in merged if row.get(key) != item[key]]
        elif directive not in (None, "merge"):
            raise StrategicError(f"Unknown patch type found: {directive}")
        else:
            plain.append(item)
    for item in plain:
        if key not in item:
            raise StrategicError(f"map: {item} does not contain declared merge key: {key}")
        for index, row in enumerate(merged):
            if isinstance(row, dict) and row.get(key) == item[key]:
                merged[index] = _merge_map(row, item, elem)
                break
        else:
            merged.append(_merge_map({}, item, elem))
    return _ordered(merged, plain, original, key)


def _identity(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _ordered(merged: list[Any], first: list[Any], server: list[Any], key: str) -> list[Any]:
    """apimachinery's order: items of the patch in its order, others in the server's, merged by the server's order."""
    wanted = [_identity(item, key) for item in first]
    present = [_identity(item, key) for item in server]
    in_patch = [item for item in merged if _identity(item, key) in wanted]
    others = [item for item in merged if _identity(item, key) not in wanted]
    in_patch.sort(key=lambda item: wanted.index(_identity(item, key)))

    def place(item: Any) -> int:
        found = _identity(item, key)
        return present.index(found) if found in present else -1

    others.sort(key=lambda item: place(item) if place(item) >= 0 else len(present))
    out: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(in_patch):
        a, b = place(others[left]), place(in_patch[right])
        if a >= 0 and b >= 0 and a < b:
            out.append(others[left])
            left += 1
        else:
            out.append(in_patch[right])
            right += 1
    return out + others[left:] + in_patch[right:]


def _reorder(original: dict[str, Any], name: str, order: Any, patch: dict[str, Any], type_: Type | None) -> None:
    if not isinstance(order, list):
        raise StrategicError(f"expected a list for {_ORDER}{name}")
    field = _field(type_, name)
    key = field.merge_key if field else ""
    current = original.get(name)
    if not isinstance(current, list):
        return
    given = patch.get(name)
    if isinstance(given, list):
        wanted = [_identity(item, key) for item in order]
        for item in given:
            if isinstance(item, dict) and item.get(_DIRECTIVE) == "delete":
                continue
            if _identity(item, key) not in wanted:
                raise StrategicError(f"The order in patch list:\n{given}\n doesn't match {_ORDER} list:\n{order}\n")
    original[name] = _ordered(current, order, current, key)
