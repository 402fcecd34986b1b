"""Images that a node has already. Kubernetes: ImageLocality."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.scheduler.noderules.image_locality import normalised_name
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SUCCESS, Status

_MIB = 1024 * 1024
_LOWEST = 23 * _MIB
_HIGHEST = 1000 * _MIB
"""Per container."""


class ImageLocality(Score):
    """Rates nodes by the size of the pod's images that they hold, scaled by how many nodes hold each."""

    name = "ImageLocality"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        sizes: dict[str, int] = {}
        holders: dict[str, int] = {}
        for info in self._cluster.nodes.values():
            names = {n: i.size_bytes for i in info.node.status.images or () for n in i.names or ()}
            for name, size in names.items():
                sizes.setdefault(name, size)
                holders[name] = holders.get(name, 0) + 1
        total = max(len(self._cluster.nodes), 1)
        state.write(self.name, {n: int(size * (holders[n] / total)) for n, size in sizes.items()})
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        worth: dict[str, int] = state.read(self.name) or {}
        held = {n for i in node.node.status.images or () for n in i.names or ()}
        containers = [*(pod.pod.spec.init_containers or ()), *(pod.pod.spec.containers or ())]
        mounted = [v.image.reference for v in pod.pod.spec.volumes or () if v.image]
        images = [normalised_name(i) for i in (*(c.image for c in containers), *mounted)]
        total = sum(worth.get(i, 0) for i in images if i in held)
        top = _HIGHEST * max(len(containers), 1)
        return MAX_SCORE * (min(max(total, _LOWEST), top) - _LOWEST) // (top - _LOWEST)
