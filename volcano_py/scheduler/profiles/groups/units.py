"""Units: what preemption evicts together, and how important it is. Kubernetes: framework/preemption, with the feature
gate GenericWorkload.

A pod whose PodGroup, or a group above it, has the disruption mode `all` is evicted with all pods of the highest such
group, on all nodes. The priority of a grouped pod is that of its root group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.groups.tree import GroupId, Tree, priority_of
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

_POD, _GROUP, _COMPOSITE = 0, 1, 2


class _Owner(NamedTuple):
    priority: int
    rank: int
    whole: GroupId | None
    """The group that is evicted as a whole."""


class Units:
    def __init__(self, cluster: ProfileCluster, tree: Tree) -> None:
        self._cluster = cluster
        self._tree = tree

    def priority(self, pod: PodInfo) -> float:
        """The priority that a preemptor's priority must exceed to evict a pod."""
        return self._owner(pod).priority if pod.group else pod.priority

    def fall_for(self, pod: PodInfo, preemptor: PodInfo) -> bool:
        """Whether the preemptor may evict a pod."""
        return self.priority(pod) < preemptor.priority

    def fallen(self, victims: Iterable[PodInfo]) -> tuple[PodInfo, ...]:
        """The victims, with the pods on all nodes that are evicted with them."""
        return tuple({p.key: p for v in victims for p in self.unit_of(v)}.values())

    def together(self, pods: Iterable[PodInfo]) -> list[tuple[PodInfo, ...]]:
        """The pods of one node: those that are evicted together in one tuple, every other pod in one of its own."""
        found: dict[object, list[PodInfo]] = {}
        for pod in pods:
            whole = self._owner(pod).whole if pod.group else None
            found.setdefault(whole or pod.key, []).append(pod)
        return [tuple(members) for members in found.values()]

    def unit_of(self, pod: PodInfo) -> tuple[PodInfo, ...]:
        """A pod with all pods, on any node, that are evicted with it."""
        whole = self._owner(pod).whole if pod.group else None
        return (pod,) if whole is None else tuple(p for p, _ in self._tree.on_nodes(whole)) or (pod,)

    def below(self, priority: float) -> list[tuple[PodInfo, ...]]:
        """All units of the cluster with a lower priority."""
        found: list[tuple[PodInfo, ...]] = []
        whole: set[GroupId] = set()
        for pod in (p for n in self._cluster.in_order() for p in n.pods.values()):
            owner = self._owner(pod) if pod.group else None
            if (owner.priority if owner is not None else pod.priority) >= priority:
                continue
            if owner is None or owner.whole is None:
                found.append((pod,))
            elif owner.whole not in whole:
                whole.add(owner.whole)
                found.append(self.unit_of(pod))
        return found

    def importance(self, unit: tuple[PodInfo, ...]) -> tuple[float, ...]:
        """A sort key, the most important unit first. `unit`: pods of the unit, on one node or on all."""
        first = unit[0]
        owner = self._owner(first)
        whole = self.unit_of(first)
        starts = [p.start for p in whole]
        earliest = min(float("inf") if s is None else s for s in starts)
        return -owner.priority, -owner.rank, -len(whole), earliest

    def _owner(self, pod: PodInfo) -> _Owner:
        priority, rank, whole = pod.priority, _POD, None
        for at, group in self._tree.ancestors(pod.group) if pod.group else ():
            priority = priority_of(group)
            rank = max(rank, _GROUP)
            if group.spec.evicted_whole:
                whole = at
                rank = _COMPOSITE if at.composite else _GROUP
        return _Owner(priority, rank, whole)
