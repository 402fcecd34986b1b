"""Higher priority first, then the pod that has waited longer in the queue. Kubernetes: PrioritySort."""

from __future__ import annotations

from volcano_py.scheduler.profiles.plugin_api.extension_points import QueueSort
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class PrioritySort(QueueSort):
    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float | str, ...]:
        return (-pod.priority, queued_at)
