"""Scores by how evenly the resources of a node would be used. Kubernetes: NodeResourcesBalancedAllocation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from volcano_py.scheduler.framework.search.node_rules import LOCAL
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import AnyColumns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import FIRST, PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status
from volcano_py.scheduler.profiles.plugins.fit import ResourceWeight
from volcano_py.scheduler.rules.allocation import balance, balances, evennesses
from volcano_py.scheduler.rules.arrays import Ints


class BalancedAllocationArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    resources: list[ResourceWeight] = []
    """The resources that count; their weights have no effect."""


class NodeResourcesBalancedAllocation(Score):
    """Up to 50 if the pod makes a node less even, 75 if it changes nothing, up to 100 if it makes the node more
    even."""

    name = "NodeResourcesBalancedAllocation"
    scope = LOCAL

    def __init__(self, args: BalancedAllocationArguments, cluster: ProfileCluster) -> None:
        self._extended = cluster.extended
        self._resources = [r.name for r in args.resources] or [CPU, MEMORY]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return SUCCESS if any(pod.requests.get(r) for r in self._resources) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        names = self._counted(pod)
        amounts = [self._extended.capacity_and_use(node, r) for r in names]
        return balance(
            [has for has, _ in amounts], [use for _, use in amounts], [pod.requests.get(r, 0) for r in names]
        )

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        names = self._counted(pod)
        capacity = np.array([nodes.allocatable(r) for r in names], dtype=np.float64)
        if len(names) != 2 or not capacity.all():
            return None
        used = np.array([nodes.requested(r) for r in names], dtype=np.float64)
        own = np.array([pod.requests.get(r, 0) for r in names], dtype=np.float64)
        scores: Ints = balances(evennesses(used + own[:, None], capacity), evennesses(used, capacity)).astype(np.int64)
        return scores

    def _counted(self, pod: PodInfo) -> list[str]:
        """The resources that count for a pod."""
        return [r for r in self._resources if r in FIRST or pod.requests.get(r)]
