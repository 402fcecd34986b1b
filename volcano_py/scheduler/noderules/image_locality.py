"""The score by the images that a node already has, for sessions. kube-scheduler: ImageLocality."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import STATIC, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.images import NodeImages, scores


class ImageLocalityRule:
    """Scores nodes by the size of the pod's images they have, scaled by the part of the nodes that have each image."""

    name = "ImageLocality"
    scope: Literal[Scope.STATIC] = STATIC
    batch = False

    def __init__(self, session: Session, weight: int) -> None:
        self._now = session.deviations.image_spread_now
        self._weight = weight
        self._nodes = session.of_nodes(self.name, NodeImages)

    def applies(self, task: Task) -> bool:
        return bool(self._nodes)

    def score(self, task: Task) -> Floats:
        of = task.spec_class
        sums = self._nodes.sums(of.images) if self._now else self._nodes.sums_when_added(of.images)
        return (self._weight * scores(sums, of.containers)).astype(np.float64)
