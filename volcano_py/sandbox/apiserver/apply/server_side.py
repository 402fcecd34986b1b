"""Server-side apply: merge an applied configuration into an object, with ownership and conflicts.

Kubernetes: structured-merge-diff's Updater.Apply. The manager becomes the owner of the applied fields. Fields that it
applied earlier and no longer sets are removed, unless another manager owns them. Changing fields of other managers is a
conflict unless forced.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.apply import fieldsets, managed
from volcano_py.sandbox.apiserver.apply.fieldsets import Set, child_type, element, is_list, is_map
from volcano_py.sandbox.apiserver.schema.types import Type, scalar

_MISSING = object()
_ANY = scalar("any")


def merge(type_: Type, live: Any, config: Any) -> Any:
    """The live value with the configuration applied."""
    if is_map(type_, config) and (is_map(type_, live) or live is None or live is _MISSING):
        out = dict(live) if isinstance(live, dict) else {}
        for key, item in config.items():
            out[key] = merge(child_type(type_, key), out.get(key, _MISSING), item)
        return out
    if is_list(type_, config) and is_list(type_, live):
        return _merge_list(type_, live, config)
    return config


def _merge_list(type_: Type, live: list[Any], config: list[Any]) -> list[Any]:
    assert type_.elem is not None
    left = [(element(type_, item), item) for item in live]
    right = [(element(type_, item), item) for item in config]
    left_by = dict(left)
    right_names = {name for name, _ in right}
    shared = [name for name, _ in right if name in left_by]
    out: list[Any] = []
    li = ri = si = 0

    def combined(name: str, item: Any) -> Any:
        assert type_.elem is not None
        return merge(type_.elem, left_by[name], item) if type_.keys and name in left_by else item

    while li < len(left) or ri < len(right):
        if li < len(left):
            name = left[li][0]
            if ri < len(right) and name == right[ri][0]:
                out.append(combined(name, right[ri][1]))
                li += 1
                ri += 1
                si += 1
                continue
            if name not in right_names:
                out.append(left[li][1])
                li += 1
                continue
            if si < len(shared) and shared[si] != name:
                li += 1  # shared; it is added in the configuration's order
                continue
        if ri < len(right):
            name = right[ri][0]
            out.append(combined(name, right[ri][1]))
            if si < len(shared) and shared[si] == name:
                si += 1
                if li < len(left) and left[li][0] == name:
                    li += 1
            ri += 1
        else:
            li += 1
    return out


def remove_items(type_: Type, value: Any, gone: Set) -> Any:
    """The value without the members of a set."""
    if is_map(type_, value):
        out = {}
        for key, item in value.items():
            inner = gone.get("f:" + key)
            if inner is None:
                out[key] = item
            elif inner and "." not in inner:
                kept = remove_items(child_type(type_, key), item, inner)
                if kept or not item:
                    out[key] = kept
        return out
    if is_list(type_, value):
        assert type_.elem is not None
        rows = []
        for item in value:
            inner = gone.get(element(type_, item))
            if inner is None:
                rows.append(item)
            elif inner and "." not in inner:
                rows.append(remove_items(type_.elem, item, inner))
        return rows
    return value


def prune(type_: Type, merged: Any, last: Set, applied: Set) -> Any:
    """The value without a manager's last configuration, except for fields of other appliers, including the new one.

    A struct field that held only removed fields is removed as a whole, with defaults that have no owner; fields of
    updaters that were not in the last configuration are kept.
    """
    last = named_members(type_, last)
    everything = named_members(type_, fieldsets.from_object(type_, merged))
    left = remove_items(type_, merged, last)
    kept = fieldsets.union_top(named_members(type_, fieldsets.from_object(type_, left)), named_members(type_, applied))
    left = remove_items(type_, merged, fieldsets.difference(everything, kept))
    still = named_members(type_, fieldsets.from_object(type_, left))
    gone = fieldsets.intersection(fieldsets.difference(everything, still), last)
    return remove_items(type_, merged, gone)


def named_members(type_: Type, fields: Set) -> Set:
    """The set in which every struct field with members is a member itself."""
    out: Set = {}
    for key, inner in fields.items():
        if key == ".":
            out[key] = {}
            continue
        if key.startswith("f:"):
            below_type = child_type(type_, key[2:])
            named = type_.kind == "struct" and key[2:] in type_.fields
        else:
            below_type, named = type_.elem or _ANY, False
        below = named_members(below_type, inner)
        if below and named:
            below["."] = {}
        out[key] = below
    return out


def apply(
    type_: Type,
    live: dict[str, Any],
    config: dict[str, Any],
    *,
    manager: str,
    api_version: str,
    subresource: str,
    time: str,
    force: bool,
    reset: tuple[tuple[str, ...], ...] = (),
) -> tuple[dict[str, Any], managed.Managers, Set]:
    """(merged object, managers before the check of conflicts, the configuration's set)."""
    managers = managed.read(live.get("metadata", {}).get("managedFields"))
    live_plain = {**live, "metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"}}
    key: managed.Key = (manager, "Apply", api_version, subresource)
    applied = managed.strip(fieldsets.from_object(type_, config))
    if reset:
        applied = fieldsets.remove_paths(applied, reset)
    merged = merge(type_, live_plain, config)
    last = managers.get(key)
    if last is not None and fieldsets.difference(last.fields, applied):
        appliers = applied
        for other, value in managers.items():
            if other != key and other[1] == "Apply":
                appliers = fieldsets.union_top(appliers, value.fields)
        metadata = dict(merged["metadata"])
        merged = prune(type_, merged, last.fields, appliers)
        # the fields that identify the object are never removed
        merged["metadata"] = {**{k: v for k, v in metadata.items() if k in _IDENTITY}, **merged.get("metadata", {})}
    if last is None or last.fields != applied:
        same = merged == live_plain  # an apply without changes does not update the time
        managers[key] = managed.Manager(applied, (last.time if last else "") if same else time)
    return merged, managers, applied


def resolve_conflicts(
    type_: Type,
    live: dict[str, Any],
    merged: dict[str, Any],
    managers: managed.Managers,
    key: managed.Key,
    force: bool,
    reset: tuple[tuple[str, ...], ...] = (),
    allowed: Set | None = None,
) -> None:
    """Make the applier the owner of changed fields, or raise the 409 with their owners.

    `allowed` are fields whose conflicts do not count: those of a client-side apply that is migrated.
    """
    live_plain = {**live, "metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"}}
    changed, removed = fieldsets.compare(type_, live_plain, merged)
    changed, removed = managed.strip(changed), managed.strip(removed)
    if reset:
        changed = fieldsets.remove_paths(changed, reset)
    conflicts: list[tuple[managed.Key, Set]] = []
    for other, value in managers.items():
        if other == key:
            continue
        both = fieldsets.intersection(value.fields, changed)
        if both and not (allowed and not fieldsets.difference(both, allowed)):
            conflicts.append((other, both))
    if conflicts and not force:
        raise conflict_error(conflicts)
    for other, value in managers.items():
        if other != key:
            both = fieldsets.intersection(value.fields, changed)
            value.fields = fieldsets.difference(value.fields, both) if both else value.fields
    if removed:
        for other, value in managers.items():
            if other != key:
                value.fields = fieldsets.difference(value.fields, removed)


_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp")


def conflict_error(conflicts: list[tuple[managed.Key, Set]]) -> StatusError:
    """409 with one cause for each field in conflict."""
    causes = []
    lines: list[tuple[str, list[str]]] = []
    for key, fields in sorted(conflicts, key=lambda row: row[0][0]):
        name, operation, version, subresource = key
        who = f'conflict with "{name}"' + (f' with subresource "{subresource}"' if subresource else "")
        if operation == "Update":
            who += f" using {version}"
        paths = leaf_paths(fields)
        for path in paths:
            causes.append({"reason": "FieldManagerConflict", "message": who, "field": path})
        lines.append((who, paths))
    count = len(causes)
    word = "conflict" if count == 1 else "conflicts"
    if count == 1:
        joined = f"{lines[0][0]}: {lines[0][1][0]}"
    else:
        joined = "\n".join("\n- ".join([f"conflicts{who.removeprefix('conflict')}:", *paths]) for who, paths in lines)
    message = f"Apply failed with {count} {word}: {joined}"
    return StatusError(409, "Conflict", message, {"causes": causes})


def leaf_paths(fields: Set, path: str = "") -> list[str]:
    """`.spec.containers[name="c"].image` for every member."""
    out: list[str] = []
    for key in sorted(fields):
        if key == ".":
            continue
        inner = fields[key]
        at = path + _shown(key)
        if not inner or "." in inner:
            out.append(at)
        out.extend(leaf_paths(inner, at))
    return out


def _shown(name: str) -> str:
    import orjson

    if name.startswith("f:"):
        return "." + name[2:]
    value = orjson.loads(name[2:])
    if name.startswith("k:"):
        return "[" + ",".join(f"{k}={orjson.dumps(v).decode()}" for k, v in value.items()) + "]"
    return f"[={orjson.dumps(value).decode()}]"
