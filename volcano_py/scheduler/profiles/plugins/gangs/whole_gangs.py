"""Gangs that preemption evicts as a whole: PodGroups of scheduling.k8s.io with `disruptionMode: PodGroup`. Kubernetes:
WorkloadAwarePreemption.

The members on one node are evicted together, and the members on other nodes with them. Such a gang has one priority:
that of its PodGroup, or the highest of its members if the PodGroup has none.
"""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class WholeGangs:
    def __init__(self, cluster: ProfileCluster) -> None:
        self._cluster = cluster

    def priority(self, pod: PodInfo) -> float:
        """The priority that a preemptor's priority must exceed to evict a pod."""
        group = self._group(pod)
        if group is None:
            return pod.priority
        if group.spec.priority is not None:
            return group.spec.priority
        return max((p.priority for p in self._members(pod.group)), default=pod.priority)

    def fall_for(self, pod: PodInfo, preemptor: PodInfo) -> bool:
        """Whether the preemptor may evict a pod; no member evicts its own gang."""
        own = pod.group and pod.group == preemptor.group and self._group(pod) is not None
        return not own and self.priority(pod) < preemptor.priority

    def fallen(self, victims: Iterable[PodInfo]) -> tuple[PodInfo, ...]:
        """The victims, with the pods on all nodes that are evicted with them."""
        all_of_them: dict[str, PodInfo] = {}
        for victim in victims:
            members = self._members(victim.group) if self._group(victim) is not None else ()
            all_of_them |= {p.key: p for p in (victim, *members)}
        return tuple(all_of_them.values())

    def together(self, pods: Iterable[PodInfo]) -> list[tuple[PodInfo, ...]]:
        """The pods of one node: each gang that is evicted as a whole in one tuple, every other pod in a tuple of its
        own."""
        found: dict[str, list[PodInfo]] = {}
        for pod in pods:
            found.setdefault(pod.key if self._group(pod) is None else f"group {pod.group}", []).append(pod)
        return [tuple(members) for members in found.values()]

    def importance(self, unit: tuple[PodInfo, ...]) -> tuple[float, ...]:
        """A sort key, the most important unit first."""
        starts = [p.start for p in unit]
        priority = self.priority(unit[0]) if len(unit) > 1 or unit[0].group else unit[0].priority
        return -priority, min(float("inf") if s is None else s for s in starts)

    def _group(self, pod: PodInfo) -> PodGroup | None:
        """The pod's group, if it is evicted as a whole."""
        if not pod.group:
            return None
        found = self._cluster.groups.get(pod.group)
        if found is None:
            found = self._cluster.model.native_groups.pod_group(pod.group)
        return found if found is not None and found.spec.evicted_whole else None

    def _members(self, group: str) -> list[PodInfo]:
        """The members on nodes, bound or assumed."""
        tasks = self._cluster.model.native_groups.tasks(group)
        return [self._cluster.info(t.pod) for t in tasks if t.takes_capacity and t.node]
