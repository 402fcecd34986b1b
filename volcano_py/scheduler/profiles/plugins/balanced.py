"""Scores by how evenly the resources of a node would be used. Kubernetes: NodeResourcesBalancedAllocation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from volcano_py.scheduler.framework.node_rules import LOCAL
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.noderules.allocation import even
from volcano_py.scheduler.noderules.score_line import toward_zero
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.columns import AnyColumns, Ints
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugins.fit_scores import ResourceWeight
from volcano_py.scheduler.profiles.pod_info import FIRST, PodInfo
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status

_HALF = MAX_SCORE // 2


class Arguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    resources: list[ResourceWeight] = []
    """The resources that count; their weights have no effect."""


class NodeResourcesBalancedAllocation(Score):
    """Up to 50 if the pod makes a node less even, 75 if it changes nothing, up to 100 if it makes the node more
    even."""

    name = "NodeResourcesBalancedAllocation"
    scope = LOCAL

    def __init__(self, args: Arguments, cluster: Cluster) -> None:
        self._extended = cluster.extended
        self._resources = [r.name for r in args.resources] or [CPU, MEMORY]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return SUCCESS if any(pod.requests.get(r) for r in self._resources) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        capacity: list[int] = []
        used: list[int] = []
        own: list[int] = []
        for r in self._resources:
            if r in FIRST or pod.requests.get(r):
                has, uses = self._extended.capacity_and_use(node, r)
                if has:
                    capacity.append(has)
                    used.append(uses)
                    own.append(pod.requests.get(r, 0))
        before = _evenness(used, capacity)
        after = _evenness([u + o for u, o in zip(used, own, strict=True)], capacity)
        return _HALF + toward_zero(_HALF + after - before, 2)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        names = [r for r in self._resources if r in FIRST or pod.requests.get(r)]
        capacity = np.array([nodes.allocatable(r) for r in names], dtype=np.float64)
        if len(names) != 2 or not capacity.all():
            return None
        used = np.array([nodes.requested(r) for r in names], dtype=np.float64)
        own = np.array([pod.requests.get(r, 0) for r in names], dtype=np.float64)
        after = even(used + own[:, None], capacity)
        scores: Ints = (_HALF + np.fix((_HALF + after - even(used, capacity)) / 2)).astype(np.int64)
        return scores


def _evenness(used: Sequence[int], capacity: Sequence[int]) -> int:
    """0 to 100."""
    parts = [min(u / c, 1.0) for u, c in zip(used, capacity, strict=True)]
    deviation = 0.0
    if len(parts) == 2:
        deviation = abs(parts[0] - parts[1]) / 2
    elif len(parts) > 2:
        mean = sum(parts) / len(parts)
        deviation = math.sqrt(sum((p - mean) * (p - mean) for p in parts) / len(parts))
    return int((1 - deviation) * MAX_SCORE)
