"""Ownership of fields: the managedFields of an object after an update.

Kubernetes: server-side field management. `update` is called for every create, PUT and patch; `server_side.py` adds
server-side apply on the same entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from volcano_py.sandbox.apiserver.apply import fieldsets
from volcano_py.sandbox.apiserver.apply.fieldsets import Set
from volcano_py.sandbox.apiserver.schema.types import Type

_STRIPPED = (
    ("f:apiVersion",),
    ("f:kind",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)
MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"

Key = tuple[str, str, str, str]  # manager, operation, apiVersion, subresource


@dataclass(slots=True)
class Manager:
    """The fields of one manager and when it last changed them."""

    fields: Set
    time: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manager) and self.fields == other.fields


Managers = dict[Key, Manager]


def read(entries: list[dict[str, Any]] | None) -> Managers:
    """Parse managedFields to a table; invalid entries raise ValueError."""
    out: Managers = {}
    for entry in entries or []:
        operation = entry.get("operation", "")
        if operation not in ("Apply", "Update"):
            raise ValueError(f"invalid operation {operation!r} in managedFields")
        key = (
            entry.get("manager", ""),
            operation,
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        fields = entry.get("fieldsV1")
        out[key] = Manager(fields if isinstance(fields, dict) else {}, entry.get("time") or "")
    return out


def write(managers: Managers) -> list[dict[str, Any]]:
    """A table to managedFields, in the server's order: applies first, then by time and name."""
    rows = [(key, value) for key, value in managers.items() if value.fields]
    rows.sort(key=lambda row: (row[0][1], row[1].time, row[0][0], row[0][2], row[0][3]))
    out = []
    for (name, operation, version, subresource), value in rows:
        entry: dict[str, Any] = {"manager": name, "operation": operation, "apiVersion": version}
        if value.time:
            entry["time"] = value.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = value.fields
        if subresource:
            entry["subresource"] = subresource
        out.append({key: item for key, item in entry.items() if item or key != "manager"})
    return out


def strip(fields: Set) -> Set:
    """Without the fields that have no owner."""
    metadata = fields.get("f:metadata")
    if metadata is not None:
        fields = fieldsets.remove_paths(fields, _STRIPPED)
        inner = fields.get("f:metadata")
        if inner is not None and (not inner or inner.keys() == {"."}):
            fields = {key: value for key, value in fields.items() if key != "f:metadata"}
        elif inner is not None and "." in inner:
            fields = {**fields, "f:metadata": {k: v for k, v in inner.items() if k != "."}}
    elif "f:apiVersion" in fields or "f:kind" in fields:
        fields = {key: value for key, value in fields.items() if key not in ("f:apiVersion", "f:kind")}
    return fields


def live_or_given(live: dict[str, Any] | None, given: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The managedFields before an update: those in the request, else the stored ones; None resets."""
    if given is not None and len(given) == 1 and not given[0]:
        return None
    if given:
        try:
            read(given)
            return given
        except ValueError:
            pass
    return (live or {}).get("metadata", {}).get("managedFields") or []


def update(
    type_: Type,
    old: dict[str, Any],
    new: dict[str, Any],
    *,
    manager: str,
    api_version: str,
    subresource: str,
    time: str,
    created: bool,
    reset: tuple[tuple[str, ...], ...] = (),
) -> None:
    """Set new's managedFields after a change from old (for a create: the empty object), in place.

    `reset` are paths that the strategy resets, so that the writer does not own them.
    """
    metadata = new["metadata"]
    given = metadata.pop("managedFields", None)
    entries = live_or_given(old if not created else None, given)
    if entries is None:
        return
    if not entries and not created:
        return  # an object without managedFields gets none
    managers = read(entries)
    old_entries = old.get("metadata", {}).get("managedFields")
    if old_entries is not None:
        old = {**old, "metadata": {k: v for k, v in old["metadata"].items() if k != "managedFields"}}
    changed, removed = fieldsets.compare(type_, old, new)
    changed = strip(changed)
    removed = strip(removed)
    if reset:
        changed = fieldsets.remove_paths(changed, reset)
        removed = fieldsets.remove_paths(removed, reset)
    key: Key = (manager, "Update", api_version, subresource)
    own = managers.get(key)
    for other, value in managers.items():
        if other != key and (changed or removed):
            fields = value.fields
            if changed:
                fields = fieldsets.difference(fields, changed)
            if removed:
                fields = fieldsets.difference(fields, removed)
            value.fields = fields
    before = own.fields if own is not None else {}
    after = before
    if changed:
        after = fieldsets.union_top(before, changed) if before else changed
    if removed and after:
        after = fieldsets.difference(after, removed)
    if own is None:
        if after:
            managers[key] = Manager(after, time)
    elif after != before:
        own.fields, own.time = after, time
    if len(managers) > MAX_UPDATE_MANAGERS:
        _cap(managers, time)
    rows = write(managers)
    if rows:
        metadata["managedFields"] = rows


def _cap(managers: Managers, time: str) -> None:
    """Merge the oldest update managers into one when there are too many of them."""
    updates = sorted((value.time, key) for key, value in managers.items() if key[1] == "Update" and not key[3])
    while len(updates) > MAX_UPDATE_MANAGERS:
        _, oldest = updates.pop(0)
        if oldest[0] == ANCIENT:
            continue
        gone = managers.pop(oldest)
        key: Key = (ANCIENT, "Update", oldest[2], "")
        bucket = managers.get(key)
        if bucket is None:
            managers[key] = Manager(gone.fields, gone.time)
            updates.append((gone.time, key))
            updates.sort()
        else:
            bucket.fields = fieldsets.union_top(bucket.fields, gone.fields)
            bucket.time = max(bucket.time, gone.time)


def without_times(obj: dict[str, Any]) -> dict[str, Any]:
    """For the test whether a write changes anything: the object without managers' times and its revision."""
    metadata = dict(obj["metadata"])
    metadata.pop("resourceVersion", None)
    entries = metadata.get("managedFields")
    if entries:
        metadata["managedFields"] = [{k: v for k, v in entry.items() if k != "time"} for entry in entries]
    return {**obj, "metadata": metadata}
