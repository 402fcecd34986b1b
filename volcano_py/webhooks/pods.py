"""Admission of pods: the settings of their resource group, and their disruption budget.

Volcano: /pods/mutate and /pods/validate. Other schedulers' pods are never changed or denied (`concerns`).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from volcano_py.api import names
from volcano_py.api.native_groups import NativeGroup, native_group
from volcano_py.webhooks.lookup import Manifest

ResourceGroup = Mapping[str, Any]
"""One entry of `resourceGroups` in the admission configuration: which pods it matches, and what it sets."""

QUEUE_GATE = "SchedulingGatesQueueAdmission"
"""The feature gate by which pods wait for their queue behind a scheduling gate."""
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_GROUPS = (names.GROUP_NAME, names.VOLCANO_GROUP_NAME, names.RESOURCE_GROUP)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def concerns(pod: Manifest, scheduler_names: Collection[str] = (names.SCHEDULER_NAME,)) -> bool:
    """Whether the rules apply to a pod: it uses one of the schedulers, or belongs to a group."""
    if (pod.get("spec") or {}).get("schedulerName") in scheduler_names:
        return True
    return any(key in _annotations(pod) for key in _GROUPS)


def mutate_pod(pod: Manifest, groups: Sequence[ResourceGroup] = (), *, queue_gate: bool = False) -> dict[str, Any]:
    """The pod with the settings of the first matching group, and the name of its native group if it requests one; the
    argument is not changed.

    `queue_gate` is the feature gate SchedulingGatesQueueAdmission: pods with the annotation are gated until their queue
    has capacity.
    """
    mutated = copy.deepcopy(dict(pod))
    spec = mutated.setdefault("spec", {})
    if queue_gate and _annotations(pod).get(names.QUEUE_ALLOCATION_GATE) == "true":
        gates = spec.get("schedulingGates") or []
        if not any(gate.get("name") == names.QUEUE_ALLOCATION_GATE for gate in gates):
            spec["schedulingGates"] = [*gates, {"name": names.QUEUE_ALLOCATION_GATE}]
    if requests_native_group(pod):
        found = _native(pod)
        assert found is not None
        spec["schedulingGroup"] = {"podGroupName": found.name}
    group = next((group for group in groups if _fits(pod, group)), None)
    if group is not None:
        _add(spec, group)
    return mutated


def requests_native_group(pod: Manifest) -> bool:
    """Whether a pod of a JobSet or LeaderWorkerSet requests a native group, and names no group."""
    named = (pod.get("spec") or {}).get("schedulingGroup") or names.GROUP_NAME in _annotations(pod)
    return not named and _native(pod) is not None


def _native(pod: Manifest) -> NativeGroup | None:
    return native_group((pod.get("metadata") or {}).get("labels"), _annotations(pod))


def validate_pod(pod: Manifest, scheduler_names: Collection[str] = (names.SCHEDULER_NAME,)) -> list[str]:
    """Problems of a new pod of these schedulers: its disruption budget is one number or percentage."""
    if (pod.get("spec") or {}).get("schedulerName") not in scheduler_names:
        return []
    annotations = _annotations(pod)
    problems = [problem for key in _BUDGETS if key in annotations for problem in _check_budget(key, annotations[key])]
    if all(key in annotations for key in _BUDGETS):
        problems.append(f"not allow configure multiple annotations <{' '.join(_BUDGETS)}> at same time; keep one")
    metadata = pod.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName", "")
    return [f"pod {name}: metadata.annotations: {problem}" for problem in problems]


def _annotations(pod: Manifest) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}


def _fits(pod: Manifest, group: ResourceGroup) -> bool:
    """By namespace, or by `key: value` lines that match annotations; without `object.key` also by the group's name."""
    chosen = group.get("object") or {}
    key, values = chosen.get("key") or "", chosen.get("value") or ()
    if key == "namespace":
        return (pod.get("metadata") or {}).get("namespace", "") in values
    if key not in ("", "annotation"):
        return False
    annotations = _annotations(pod)
    wanted = [tuple(part.strip() for part in line.split(":", 1)) for line in values if ":" in line]
    if not key:
        wanted.append((names.RESOURCE_GROUP, group.get("resourceGroup") or ""))
    return any(name in annotations and annotations[name] == value for name, value in wanted)


def _add(spec: dict[str, Any], group: ResourceGroup) -> None:
    """Labels and scheduler of the group override the pod's; its affinity is used only if the pod has none."""
    if labels := group.get("labels"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **labels}
    if not spec.get("affinity") and (affinity := _affinity(group.get("affinity") or "")):
        spec["affinity"] = affinity
    if tolerations := group.get("tolerations"):
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *copy.deepcopy(list(tolerations))]
    if scheduler := group.get("schedulerName"):
        spec["schedulerName"] = scheduler


def _affinity(text: str) -> dict[str, Any] | None:
    """The affinity, which the configuration contains as JSON; invalid JSON is ignored."""
    try:
        affinity = json.loads(text) if text else None
    except ValueError:
        return None
    return affinity if isinstance(affinity, dict) else None


def _check_budget(key: str, text: str) -> Iterator[str]:
    """A positive integer, or 1% to 99%. As in Volcano, all `%` are removed before the number is parsed."""
    digits = text.replace("%", "")
    if not _INTEGER.fullmatch(digits):
        yield (
            f"invalid value {text!r} for {key}: invalid syntax, it must be a number; "
            "use a positive integer such as 2, or a percentage such as 50%"
        )
    elif "%" in text and not 1 <= int(digits) <= 99:
        yield f"invalid value <{text!r}> for {key}, it must be a valid percentage which between 1% ~ 99%"
    elif "%" not in text and int(digits) <= 0:
        yield f"invalid value <{text!r}> for {key}, it must be a positive integer"
