"""Merging a flow's `patch.jobSpec` into the spec of its JobTemplate.

As Kubernetes' strategic merge: maps merge key by key and null removes one; of the lists below, items are identified by
a field and new ones are added; every other list is replaced. Tasks and containers merge, while a volume or a variable
takes the place of the one that it names (it could not have two sources).

The API server fills in defaults inside of a patch, too. A value that is the default there is taken for not given, or
every patch would move its job into the default queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.api.batch import DEFAULT_MAX_RETRY
from volcano_py.api.scheduling import DEFAULT_QUEUE

DEFAULTS: dict[str, Any] = {"queue": DEFAULT_QUEUE, "maxRetry": DEFAULT_MAX_RETRY}
"""What the schema fills in at the top of a job's spec."""

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "tasks": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name", "mountPath"),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort",),
    "imagePullSecrets": ("name",),
    "schedulingGates": ("name",),
}
"""List → the fields that identify an item; the first one that the items have counts (a job's volumes have no name)."""

MERGED_INSIDE = ("tasks", "containers", "initContainers")


def merge_spec(spec: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A job's spec with a patch merged into it; neither is changed."""
    given = {name: value for name, value in patch.items() if name not in DEFAULTS or value != DEFAULTS[name]}
    return _merge_maps(spec, given)


def _merge_maps(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for name, value in patch.items():
        before = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = _merge_maps(before, value)
        elif isinstance(value, list) and isinstance(before, list) and (key := _key(name, [*before, *value])):
            merged[name] = _merge_lists(before, value, key, inside=name in MERGED_INSIDE)
        else:
            merged[name] = value
    return merged


def _key(name: str, items: list[Any]) -> str:
    """The field that identifies the items of a list; empty for a list that is replaced."""
    for key in MERGE_KEYS.get(name, ()):
        if all(isinstance(item, Mapping) and key in item for item in items):
            return key
    return ""


def _merge_lists(old: list[Any], patch: list[Any], key: str, *, inside: bool) -> list[Any]:
    merged = {item[key]: item for item in old}
    for item in patch:
        merged[item[key]] = _merge_maps(merged.get(item[key], {}), item) if inside else item
    return list(merged.values())
