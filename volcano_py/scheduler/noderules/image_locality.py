"""Scores by the images that a node already has. kube-scheduler: ImageLocality."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.node_rules import STATIC, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.task import Task

_MIB = 1024 * 1024
_MIN = 23 * _MIB
_MAX_PER_CONTAINER = 1000 * _MIB


class ImageLocality:
    """Scores nodes by the size of the pod's images they have, scaled by the part of the nodes that have each image."""

    name = "ImageLocality"
    scope: Literal[Scope.STATIC] = STATIC
    batch = False

    def __init__(self, session: Session, weight: int) -> None:
        self._session = session
        self._now = session.deviations.image_spread_now
        self._weight = weight
        self._any = session.of_nodes(self.name, lambda nodes: any(n.status.images for n in nodes))

    def applies(self, task: Task) -> bool:
        return self._any

    def score(self, task: Task) -> Floats:
        objects = self._session.table.objects
        sums = np.zeros(len(objects), dtype=np.int64)
        for image in task.spec_class.images:
            sizes, holders = self._held(normalised_name(image))
            sums += (sizes * (holders / len(objects))).astype(np.int64)
        top = _MAX_PER_CONTAINER * max(task.spec_class.containers, 1)
        clamped = np.clip(sums, _MIN, top)
        found: Floats = (self._weight * (100 * (clamped - _MIN) // (top - _MIN))).astype(np.float64)
        return found

    def _held(self, image: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per node, the size of an image, 0 where it is missing, and how many nodes have it.

        Volcano uses the size on the first node that has the image, and for a new node counts only the nodes that had it
        when the node was added.
        """
        objects = self._session.table.objects
        sizes = np.zeros(len(objects), dtype=np.int64)
        has = np.zeros(len(objects), dtype=np.int64)
        for i, node in enumerate(objects):
            for held in node.status.images or ():
                if image in (held.names or ()):
                    sizes[i], has[i] = held.size_bytes, 1
                    break
        if self._now:
            return sizes, np.full(len(objects), has.sum())
        first = int(has.argmax())
        return has * sizes[first], has.cumsum()


def normalised_name(image: str) -> str:
    """An image without a tag means `:latest`."""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"
