"""Scores by the images that a node already has. Kubernetes: ImageLocality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from volcano_py.scheduler.framework.node_rules import STATIC
from volcano_py.scheduler.noderules.image_locality import normalised_name
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.columns import AnyColumns, Ints
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SUCCESS, Status

_MIB = 1024 * 1024
_LOWEST = 23 * _MIB
_HIGHEST = 1000 * _MIB
"""The thresholds per container."""


class ImageLocality(Score):
    """Scores nodes by the size of the pod's images that they have, scaled by the part of the nodes that have each
    image."""

    name = "ImageLocality"
    scope = STATIC

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._worth: dict[str, int] = {}
        """For each image, the score of a node that has it."""
        self._generation = -1

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        if self._generation != self._cluster.columns.generation:
            self._generation = self._cluster.columns.generation
            self._worth = self._rate()
        return SUCCESS

    def _rate(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        holders: dict[str, int] = {}
        for info in self._cluster.nodes.values():
            names = {n: i.size_bytes for i in info.node.status.images or () for n in i.names or ()}
            for name, size in names.items():
                sizes.setdefault(name, size)
                holders[name] = holders.get(name, 0) + 1
        total = max(len(self._cluster.nodes), 1)
        return {n: int(size * (holders[n] / total)) for n, size in sizes.items()}

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        held = {n for i in node.node.status.images or () for n in i.names or ()}
        total = sum(self._worth.get(i, 0) for i in _images(pod) if i in held)
        containers = len(pod.pod.spec.init_containers or ()) + len(pod.pod.spec.containers or ())
        top = _HIGHEST * max(containers, 1)
        return MAX_SCORE * (min(max(total, _LOWEST), top) - _LOWEST) // (top - _LOWEST)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        known = any(image in self._worth for image in _images(pod))
        return None if known else np.zeros(len(nodes), dtype=np.int64)


def _images(pod: PodInfo) -> list[str]:
    """The images of the pod's containers and volumes."""
    containers = [*(pod.pod.spec.init_containers or ()), *(pod.pod.spec.containers or ())]
    return [normalised_name(i) for i in (*(c.image for c in containers), *pod.mounted_images)]
