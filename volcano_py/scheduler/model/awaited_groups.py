"""Bare pods that wait for their PodGroup, as the controller may form a gang of them. Volcano: all bare pods.

A pod without a PodGroup is a job of one task at once (deviation `bare-pods`). That is wrong for a member of a gang: it
would run alone. Whether it is one cannot depend on which is faster, the scheduler or the controller; it depends on the
pod's owner. The kinds and labels are those of `volcano_py.controllers.podgroup`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from volcano_py.api import names
from volcano_py.api.core import Pod

KUBERNETES: Final = "default-scheduler"
"""The scheduler of plain pods of Kubernetes: the controller creates no PodGroups for them."""
KNOWN_WORKLOADS: Final = ("ReplicaSet", "StatefulSet")
"""Owners that the scheduler watches: their annotation decides."""
OTHER_OWNERS: Final = (("batch/", "Job"), ("apps/", "DaemonSet"), ("ray.io/", "RayCluster"))
"""Owners that may state a minimum, and that the scheduler does not watch: group of the API, and kind."""
GANG_LABELS: Final = (
    "jobset.sigs.k8s.io/jobset-uid",
    "leaderworkerset.sigs.k8s.io/group-key",
    "spark-app-selector",
)
"""Labels of the pods of a gang with several controllers: JobSet, LeaderWorkerSet, SparkApplication."""


def awaits_group(pod: Pod, others: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a pod without a PodGroup may belong to a gang. `others`: the objects of the model by kind and key."""
    if pod.spec.scheduler_name == KUBERNETES:
        return False
    labels = pod.metadata.labels or {}
    if any(labels.get(label) for label in GANG_LABELS):
        return True
    owner = pod.metadata.controller
    if owner is None:
        return False
    if any(owner.kind == kind and owner.api_version.startswith(group) for group, kind in OTHER_OWNERS):
        return True
    if owner.kind in KNOWN_WORKLOADS and owner.api_version.startswith("apps/"):
        known = others.get(owner.kind, {}).get(f"{pod.metadata.namespace}/{owner.name}")
        # Not known: it is not watched, or has not been returned yet.
        return known is None or _states_minimum(known.metadata.annotations or {})
    return False


def _states_minimum(annotations: Mapping[str, str]) -> bool:
    text = annotations.get(names.GROUP_MIN_MEMBER, "")
    return text.isdecimal() and int(text) > 1
