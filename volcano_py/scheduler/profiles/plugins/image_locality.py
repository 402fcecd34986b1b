"""The score by the images that a node already has, for profiles. Kubernetes: ImageLocality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import STATIC
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import AnyColumns, Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status
from volcano_py.scheduler.rules.arrays import Ints
from volcano_py.scheduler.rules.images import NodeImages, scores


class ImageLocality(Score):
    """Scores nodes by the size of the pod's images that they have, scaled by the part of the nodes that have each
    image."""

    name = "ImageLocality"
    scope = STATIC

    def __init__(self, cluster: ProfileCluster) -> None:
        self._cluster = cluster
        self._nodes = NodeImages([])
        self._of: tuple[Columns | None, int] = (None, -1)
        """The columns, and their generation, for which this is computed."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        if self._cluster.without_images:
            return SKIP
        columns = self._cluster.columns
        if self._of[0] is not columns or self._of[1] != columns.generation:
            self._of = columns, columns.generation
            in_order = [info.node for info in self._cluster.nodes.values()]
            self._nodes = NodeImages([info.node for info in columns.infos], in_order)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        held = {n for i in node.node.status.images or () for n in i.names or ()}
        worth = self._nodes.worth
        of = self._cluster.class_of(pod)
        total = sum(worth.get(image, 0) for image in of.images if image in held)
        return int(scores(np.array([total]), of.containers)[0])

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        of = self._cluster.class_of(pod)
        if not any(image in self._nodes.worth for image in of.images):
            return np.zeros(len(nodes), dtype=np.int64)
        return scores(self._nodes.sums(of.images), of.containers) if isinstance(nodes, Columns) else None
