"""Pods wait until their scheduling gates are removed. Kubernetes: SchedulingGates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.scheduler.profiles.plugin_api.events import PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import PreEnqueue
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status, unresolvable


class SchedulingGates(PreEnqueue):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")

    def interests(self) -> Sequence[Interest]:
        return (Interest(PODS, ActionType.GATES_GONE, _own),)


def _own(pod: PodInfo, old: Any, new: Any) -> bool:
    return new is not None and new.pod.metadata.uid == pod.pod.metadata.uid
