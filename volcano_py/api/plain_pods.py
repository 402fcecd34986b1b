"""Plain pods, which refer to no PodGroup: which of them need one, and what the PodGroup of the others would contain.
Pure. Volcano: its pg-controller creates one for each, or for each controller of pods.

Scheduler and controllers decide by the same rule, so that a pod never waits for a PodGroup that is not created. A
PodGroup is needed by a pod that may belong to a gang, as its minimum is read from an owner that the scheduler does not
watch, and by one with a network topology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from volcano_py.api import names
from volcano_py.api.core import Namespace, Pod
from volcano_py.api.meta import ApiObject
from volcano_py.api.scheduling import DEFAULT_QUEUE

WATCHED_OWNERS: Final = ("ReplicaSet", "StatefulSet")
"""Owners of apps/v1 that scheduler and controllers watch: their annotations decide."""
OTHER_OWNERS: Final = (("batch/", "Job"), ("apps/", "DaemonSet"), ("ray.io/", "RayCluster"))
"""Owners that may state a minimum, and that the scheduler does not watch: group of the API, and kind."""
GANG_LABELS: Final = (
    "jobset.sigs.k8s.io/jobset-uid",
    "leaderworkerset.sigs.k8s.io/group-key",
    "spark-app-selector",
)
"""Labels of the pods of a gang with several controllers: JobSet, LeaderWorkerSet, SparkApplication."""

_OF_PODS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_PREFIX = "volcano.sh/"


def watched_owner(pod: Pod) -> str:
    """The kind of the pod's controller if it is one of `WATCHED_OWNERS`, else ""."""
    owner = pod.metadata.controller
    known = owner is not None and owner.kind in WATCHED_OWNERS and owner.api_version.startswith("apps/")
    return owner.kind if owner is not None and known else ""


def owner_annotations(pod: Pod, find: Callable[[str, str], ApiObject | None]) -> Mapping[str, str] | None:
    """The annotations that a pod inherits from its owner; {} without an owner of `WATCHED_OWNERS`, None if it is not
    known. `find(kind, "namespace/name")` returns the watched object, if there is one."""
    kind, owner = watched_owner(pod), pod.metadata.controller
    if not kind or owner is None:
        return {}
    found = find(kind, f"{pod.metadata.namespace}/{owner.name}")
    if found is None or found.metadata.uid != owner.uid:
        return None  # it has not been received yet, or another object has its name
    annotations: Mapping[str, str] = found.metadata.annotations or {}
    return annotations


def needs_group(pod: Pod, of_owner: Mapping[str, str] | None) -> bool:
    """Whether a plain pod needs a PodGroup. `of_owner`: the annotations of its owner, if that is one of
    `WATCHED_OWNERS`; None: unknown."""
    given, labels = pod.metadata.annotations or {}, pod.metadata.labels or {}
    if names.NETWORK_TOPOLOGY_MODE in given or names.NETWORK_TOPOLOGY_HIGHEST_TIER in given:
        return True
    if any(labels.get(label) for label in GANG_LABELS):
        return True
    owner = pod.metadata.controller
    if owner is None:
        return False
    if any(owner.kind == kind and owner.api_version.startswith(group) for group, kind in OTHER_OWNERS):
        return True
    return bool(watched_owner(pod)) and (of_owner is None or _states_minimum(of_owner))


def group_name(pod: Pod) -> str:
    """The name of the PodGroup: all pods of one controller share it."""
    owner = pod.metadata.controller
    return f"podgroup-{owner.uid if owner is not None else pod.metadata.uid}"


def queue_of(pod: Pod, of_owners: Sequence[Mapping[str, str]]) -> str:
    """The queue in the annotations of the pod, else of its first owner with one, else ""."""
    found = ((annotations or {}).get(names.POD_QUEUE_NAME) for annotations in (pod.metadata.annotations, *of_owners))
    return next((queue for queue in found if queue), "")


def queue_of_namespace(queue: str, namespace: Namespace | None) -> str:
    """The queue of a PodGroup that sets this one. Volcano: admission of PodGroups, which replaces the default one."""
    annotations = namespace.metadata.annotations if namespace is not None else None
    return (annotations or {}).get(names.POD_QUEUE_NAME) or queue if queue in ("", DEFAULT_QUEUE) else queue


def annotations_of_group(pod: Pod, of_owners: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The annotations of the PodGroup, from the pod and its owners."""
    given = pod.metadata.annotations or {}
    annotations: dict[str, str] = {}
    for inherited in of_owners:
        for key, value in inherited.items():
            if key.startswith(_PREFIX):
                annotations.setdefault(key, value)
    budget = names.JDB_MIN_AVAILABLE if names.JDB_MIN_AVAILABLE in given else names.JDB_MAX_UNAVAILABLE
    annotations.update({key: given[key] for key in (*_OF_PODS, budget) if key in given})
    return annotations


def labels_of_group(pod: Pod) -> dict[str, str]:
    """The labels of the PodGroup, from the pod."""
    return {key: value for key, value in (pod.metadata.labels or {}).items() if key in _LABELS}


def _states_minimum(annotations: Mapping[str, str]) -> bool:
    text = annotations.get(names.GROUP_MIN_MEMBER, "")
    return text.isdecimal() and int(text) > 1
