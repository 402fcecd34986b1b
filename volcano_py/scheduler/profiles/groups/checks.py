"""What all pods of a root group have in common. Kubernetes: validatePodGroup."""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.api.gang import AnyGroup
from volcano_py.scheduler.profiles.groups.tree import priority_of
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

LOWER = "PreemptLowerPriority"
_SAME = "all pods in a single pod group should have the same"


def problem_of(root: AnyGroup, pods: Iterable[PodInfo], *, own_policy: bool) -> str:
    """Why the pods of a group, waiting or running, cannot be tried together; empty if they can.

    `own_policy`: the group has a preemption policy (feature gate PodGroupPreemptionPolicy).
    """
    priority = priority_of(root)
    policy = (root.spec.preemption_policy or LOWER) if own_policy else ""
    scheduler = ""
    for pod in pods:
        spec = pod.pod.spec
        if pod.priority != priority:
            return f"{_SAME} priority as the pod group's priority, got {pod.priority} and {priority}"
        scheduler = scheduler or spec.scheduler_name
        if spec.scheduler_name != scheduler:
            return f'{_SAME} .spec.schedulerName set, got: "{spec.scheduler_name}" and "{scheduler}"'
        own = spec.preemption_policy or LOWER
        policy = policy or own
        if own != policy:
            return f"{_SAME} preemption policy, got {own} and {policy}"
    return ""
