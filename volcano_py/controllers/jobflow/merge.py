"""Merges a JobFlow's `patch.jobSpec` into the spec of its JobTemplate.

As in Kubernetes' strategic merge patch: maps merge key by key and null removes a key; items of the lists below are
identified by a field, and new ones are appended; all other lists are replaced. Tasks and containers are merged, while a
volume or a variable replaces the existing one with its name (it could not have two sources).

The API server also sets defaults inside a patch. A value that equals the default counts as absent, or every patch would
move its Job to the default queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.api.batch import DEFAULT_MAX_RETRY
from volcano_py.api.scheduling import DEFAULT_QUEUE

DEFAULTS: dict[str, Any] = {"queue": DEFAULT_QUEUE, "maxRetry": DEFAULT_MAX_RETRY}
"""The schema's defaults at the top level of a Job's spec."""

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
"""List → fields that identify an item; the first one that the items have is used (a Job's volumes have no name)."""

MERGED_INSIDE = ("tasks", "containers", "initContainers")


def merge_spec(spec: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A Job's spec merged with a patch; the arguments are not changed."""
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
