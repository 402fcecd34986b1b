"""The order of nodes for pods with Ascend 310P chips of MindCluster: the node with the fewest idle AI cores first,
better without fewer AI CPUs. Volcano: devices/ascend/310p/vnpu/score_policy.go.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.api import names
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Bools, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.ledger import Ledger

_POINTS = 8.0


class NpuOrder:
    """`ledger`: that of the type `Vnpu310P`."""

    name = "deviceshare/ascend310p-vNPU"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, ledger: Ledger, weight: int) -> None:
        self._session = session
        self._ledger = ledger
        self._weight = weight

    def applies(self, task: Task) -> bool:
        return self._ledger.demand(task) is not None

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: Indices) -> Floats:
        idle = self._session.numbers.idle[self._session.table.rows[names.NPU_CORE]][candidates]
        order = np.argsort(idle, kind="stable")
        downgraded = self._ledger.fits(task, candidates)[1] > 0
        return points(order, downgraded) * self._weight


def points(order: Indices, downgraded: Bools) -> Floats:
    """The points of candidates in this order: the first one gets points. If some have fewer AI CPUs, those before the
    first other one get the same, and that one twice as many."""
    found: Floats = np.zeros(len(order))
    if not len(order):
        return found
    clean = (~downgraded[order]).nonzero()[0]
    if len(clean) == len(order):
        found[order[0]] = _POINTS
        return found
    first = int(clean[0]) if len(clean) else len(order)
    found[order[:first]] = _POINTS
    if first < len(order):
        found[order[first]] = 2 * _POINTS
    return found
