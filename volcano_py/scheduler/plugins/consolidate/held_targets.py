"""The capacity that is kept for moved pods until they run again. Not in Volcano.

Without it, a job that comes in between would take what a moved pod needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

AGAIN = 300.0
"""Seconds after which a move that was not completed is forgotten."""


class HeldTarget(Struct):
    """What a moved pod needs on a node."""

    node: str
    requests: dict[str, float]


class MovedJob(Struct):
    """A job of which pods were moved."""

    at: float
    ready: int
    """How many of its pods were placed before."""
    targets: list[HeldTarget]


@dataclass
class MovesInProgress:
    """Kept between sessions."""

    at: dict[str, float] = field(default_factory=dict)
    """When pods were moved for a gang."""
    moved: dict[str, MovedJob] = field(default_factory=dict)
    """By job."""

    def forget(self, session: Session) -> None:
        """What is complete, too old, or in the future of a clock that jumped."""
        self.at = {uid: at for uid, at in self.at.items() if at <= session.now < at + AGAIN}
        for uid, moved in list(self.moved.items()):
            job = session.jobs.get(uid)
            is_old = not moved.at <= session.now < moved.at + AGAIN
            if is_old or job is None or job.ready_num >= moved.ready:
                del self.moved[uid]
            else:
                session.wake_at(moved.at + AGAIN)


class TargetFilter:
    """A DOMAIN filter for all pods but those of the moved jobs."""

    name = "Consolidation"
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, session: Session, moves: MovesInProgress) -> None:
        self._session = session
        self._held: dict[str, NDArray[np.float64]] = {}
        """By job, by resource and node."""
        self.reasons = [Reason("node(s) were kept for pods that move", FitCode.UNSCHEDULABLE)]
        table = session.table
        for uid, moved in moves.moved.items():
            amounts = self._held[uid] = np.zeros_like(session.numbers.idle)
            for target in moved.targets:
                node = table.index.get(target.node)
                for name, amount in target.requests.items():
                    if node is not None and name in table.rows:
                        amounts[table.rows[name], node] += amount
        self._all = sum(self._held.values(), np.zeros_like(session.numbers.idle))

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        table, numbers = self._session.table, self._session.numbers
        own = self._held.get(task.job)
        held = self._all if own is None else self._all - own
        rows = task.spec_class.checked_rows(table)
        needs = task.spec_class.vector(table)
        free = numbers.idle[rows] + numbers.releasing[rows] - numbers.pipelined[rows] - held[rows]
        codes = np.zeros(len(table), dtype=np.int32)
        codes[(free + EPS < needs[rows][:, None]).any(axis=0) & held.any(axis=0)] = 1
        return codes


def target_of(session: Session, task: Task, node: int) -> HeldTarget:
    """What a pod needs on its new node."""
    vector, table = task.spec_class.vector(session.table), session.table
    return HeldTarget(table.names[node], {name: float(vector[row]) for name, row in table.rows.items() if vector[row]})
