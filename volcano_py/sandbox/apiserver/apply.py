"""Server-side apply: merge an applied configuration into an object, with ownership and conflicts.

Kubernetes: structured-merge-diff's Updater.Apply. The applied fields become the manager's; fields it applied before
and no longer names go away unless somebody else owns them; changing what others own is a conflict unless forced.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver import fieldsets, managed
from volcano_py.sandbox.apiserver.errors import StatusError
from volcano_py.sandbox.apiserver.fieldsets import Set, child_type, element, is_list, is_map
from volcano_py.sandbox.apiserver.types import Type

_MISSING = object()


def merge(type_: Type, live: Any, config: Any) -> Any:
    """The live value with the configuration laid over it."""
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
                li += 1  # shared, but its turn comes in the configuration's order
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
            elif inner and (below := {k: v for k, v in inner.items() if k != "."}):
                kept = remove_items(child_type(type_, key), item, below)
                if kept or not item or "." not in inner:
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


def _prune(type_: Type, merged: Any, dropped: Set, others: Set) -> Any:
    """Remove the dropped fields, but for those that others own (or that hold something others own)."""
    return remove_items(type_, merged, fieldsets.difference(dropped, _with_parents(others)))


def _with_parents(fields: Set) -> Set:
    """The set with every item of a list that holds a member made a member itself."""
    out: Set = {}
    for key, inner in fields.items():
        below = _with_parents(inner)
        out[key] = {**below, ".": {}} if below else {}
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
    """(merged object, managers before conflicts are looked at, the configuration's set)."""
    managers = managed.read(live.get("metadata", {}).get("managedFields"))
    live_plain = {**live, "metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"}}
    key: managed.Key = (manager, "Apply", api_version, subresource)
    applied = managed.strip(fieldsets.from_object(type_, config))
    if reset:
        applied = fieldsets.remove_paths(applied, reset)
    merged = merge(type_, live_plain, config)
    last = managers.get(key)
    if last is not None:
        dropped = fieldsets.difference(last.fields, applied)
        if dropped:
            others: Set = {}
            for other, value in managers.items():
                if other != key:
                    others = fieldsets.union_top(others, value.fields)
            others = fieldsets.union_top(others, applied)
            merged = _prune(type_, merged, dropped, others)
    if last is None or last.fields != applied:
        managers[key] = managed.Manager(applied, time)
    return merged, managers, applied


def resolve_conflicts(
    type_: Type,
    live: dict[str, Any],
    merged: dict[str, Any],
    managers: managed.Managers,
    key: managed.Key,
    force: bool,
    reset: tuple[tuple[str, ...], ...] = (),
) -> None:
    """Give changed fields to the applier, or raise the 409 that names their owners."""
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
        if both:
            conflicts.append((other, both))
    if conflicts and not force:
        raise conflict_error(conflicts, managers)
    for other, both in conflicts:
        managers[other].fields = fieldsets.difference(managers[other].fields, both)
    if removed:
        for other, value in managers.items():
            if other != key:
                value.fields = fieldsets.difference(value.fields, removed)


def conflict_error(conflicts: list[tuple[managed.Key, Set]], managers: managed.Managers) -> StatusError:
    """409 with one cause for each field in conflict."""
    causes = []
    lines = []
    for key, fields in sorted(conflicts, key=lambda row: row[0][0]):
        name, operation, version, subresource = key
        who = f'conflict with "{name}"' + (f' with subresource "{subresource}"' if subresource else "")
        if operation == "Update":
            when = managers[key].time
            who += f" using {version}" + (f" at {when}" if when else "")
        else:
            who += f" using {version}" if version else ""
        paths = leaf_paths(fields)
        for path in paths:
            causes.append({"reason": "FieldManagerConflict", "message": who, "field": path})
        if len(paths) == 1:
            lines.append(f"{who}: {paths[0]}")
        else:
            lines.append(f"{who}:\n" + "\n".join(f"- {path}" for path in paths))
    count = len(causes)
    word = "conflict" if count == 1 else "conflicts"
    joined = lines[0] if len(lines) == 1 else "\n".join(lines)
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
