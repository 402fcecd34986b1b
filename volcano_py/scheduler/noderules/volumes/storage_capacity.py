"""The storage capacity of nodes, for sessions. kube-scheduler: VolumeBinding with the feature gate
StorageCapacityScoring.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.noderules.volumes.volume_binding import book_of
from volcano_py.scheduler.rules.score_line import LinePoint
from volcano_py.scheduler.rules.volumes.storage_capacity import GATE, score_of_node


class StorageCapacityScore:
    """The score of a node in a session."""

    name = GATE
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, shape: Sequence[LinePoint], weight: int) -> None:
        self._session = session
        self._shape = shape
        self._weight = weight

    def applies(self, task: Task) -> bool:
        return task.claims.volumes is not None and bool(task.claims.volumes.waiting)

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: Indices) -> Floats:
        demand = task.claims.volumes
        assert demand is not None, "applies has seen it"
        book, of = book_of(self._session), self._session.cluster.claims.storage
        scores = [score_of_node(self._shape, book, of, demand, node) for node in candidates.tolist()]
        return np.array(scores, dtype=np.float64) * self._weight
