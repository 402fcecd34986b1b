"""Images that a node has already. kube-scheduler: ImageLocality."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.node_rules import STATIC, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.task import Task

_MIB = 1024 * 1024
_MIN = 23 * _MIB
_MAX_PER_CONTAINER = 1000 * _MIB


class ImageLocality:
    """Rates nodes by the size of the pod's images they hold, scaled by how widely each is spread."""

    name = "ImageLocality"
    scope: Literal[Scope.STATIC] = STATIC
    batch = False

    def __init__(self, session: Session, weight: int) -> None:
        self._session = session
        self._weight = weight
        self._any = any(n.status.images for n in session.table.objects)

    def applies(self, task: Task) -> bool:
        return self._any

    def rate(self, task: Task) -> Floats:
        objects = self._session.table.objects
        sums = np.zeros(len(objects), dtype=np.int64)
        for image in task.spec_class.images:
            wanted = normalised_name(image)
            sizes = np.zeros(len(objects), dtype=np.int64)
            for i, node in enumerate(objects):
                for held in node.status.images or ():
                    if wanted in (held.names or ()):
                        sizes[i] = held.size_bytes
                        break
            holders = int((sizes > 0).sum())
            sums += (sizes * (holders / len(objects))).astype(np.int64)
        top = _MAX_PER_CONTAINER * max(task.spec_class.containers, 1)
        clamped = np.clip(sums, _MIN, top)
        found: Floats = (self._weight * (100 * (clamped - _MIN) // (top - _MIN))).astype(np.float64)
        return found


def normalised_name(image: str) -> str:
    """An image without a tag means `:latest`."""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"
