"""Which pods to move so that one waiting gang starts. Not in Volcano.

The pods of the gang are placed largest first: where capacity is idle, where it becomes free anyway, or where the
cheapest moves make it free. Each moved pod must fit what is idle elsewhere beside the gang, by all filters. The plan
is a list of decisions; nothing in the session changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.jobs.planned_moves import GangMoves
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.network.job_domains import domains_of_job
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.plugins.consolidate.movable import MovablePod, share_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_MOST_NODES = 64
"""On how many nodes moves are considered for one pod of a gang, those first that lack least."""


def plan_for(session: Session, job: SessionJob, movable: dict[int, list[MovablePod]]) -> GangMoves | None:
    """The moves that start a gang; None: none are found, it needs none, or they would move more than it gains."""
    missing = job.min_available - job.ready_num
    pending = [task for task in session.pending(job) if not task.sched_gated][: max(0, missing)]
    if not pending or len(pending) < missing:
        return None
    for task in pending:
        if session.rules.pre_predicate(task) is not None:
            return None
    gained = sum(share_of(session, task) for task in pending)
    pending.sort(key=lambda task: -share_of(session, task))
    best: _GangPlan | None = None
    for domain in _domains(session, job):
        plan = _GangPlan(session, movable, gained, domain)
        if not all(plan.place(task) for task in pending):
            continue
        if not plan.moved:
            return None
        if best is None or _cost(plan.moved) < _cost(best.moved):
            best = plan
    if best is None:
        return None
    moved = [(pod.task, node) for pod, node in best.moved]
    return GangMoves(job.uid, moved, best.placed, sum(pod.cost for pod, _ in best.moved))


def _domains(session: Session, job: SessionJob) -> list[Bools]:
    """The nodes of each domain within one of which the gang must be, or all nodes."""
    domains = domains_of_job(session, job)
    return [np.ones(len(session.table), dtype=bool)] if domains is None else domains


class _GangPlan:
    """What is idle and what becomes free while the plan grows."""

    def __init__(self, session: Session, movable: dict[int, list[MovablePod]], gained: float, domain: Bools) -> None:
        n = session.numbers
        self._session = session
        self._domain = domain
        """The nodes on which the gang may be; what is moved may be on others."""
        self._left = {node: list(pods) for node, pods in movable.items()}
        """The pods that are not moved yet."""
        self._now: Floats = n.idle - n.pipelined
        self._later: Floats = n.idle + n.releasing - n.pipelined
        self._now = np.minimum(self._now, self._later)
        self._may_move = gained
        """The share of the cluster that may still be moved."""
        self.moved: list[tuple[MovablePod, int]] = []
        self.placed: list[tuple[Task, int]] = []

    def place(self, task: Task) -> bool:
        """Place one pod of the gang."""
        accepted = self._session.placement.accepted(task, check_capacity=False) & self._domain
        for free in (self._now, self._later):
            node = self._fullest(task, accepted, free)
            if node is not None:
                self._put(task, node)
                return True
        best: tuple[float, int, list[tuple[MovablePod, int]]] | None = None
        for node in self._candidates(task, accepted):
            moves = self._moves(task, node)
            if moves is not None:
                cost = sum(pod.cost for pod, _ in moves)
                if best is None or (cost, len(moves)) < (best[0], len(best[2])):
                    best = cost, node, moves
        if best is None:
            return False
        _, node, moves = best
        for pod, target in moves:
            self._move(pod, node, target)
        self._put(task, node)
        return True

    def _put(self, task: Task, node: int) -> None:
        self._later[:, node] -= self._vector(task)
        self._now[:, node] = np.minimum(self._now[:, node], self._later[:, node])
        self.placed.append((task, node))

    def _move(self, pod: MovablePod, node: int, target: int) -> None:
        vector = self._vector(pod.task)
        self._left[node].remove(pod)
        self._later[:, node] += vector
        self._now[:, target] -= vector
        self._later[:, target] -= vector
        self._may_move -= pod.share
        self.moved.append((pod, target))

    def _candidates(self, task: Task, accepted: Bools) -> list[int]:
        """Nodes on which moves could make room, those first that lack least."""
        rows, needs = self._rows(task), self._vector(task)
        found: list[tuple[float, int]] = []
        for node, pods in self._left.items():
            if not accepted[node] or not pods:
                continue
            lacking = needs[rows] - self._later[rows, node]
            if (sum(self._vector(pod.task)[rows] for pod in pods) + EPS >= lacking).all():
                found.append((float((np.maximum(lacking, 0.0) / np.maximum(needs[rows], 1.0)).max(initial=0.0)), node))
        found.sort(key=lambda pair: (pair[0], self._session.table.names[pair[1]]))
        return [node for _, node in found[:_MOST_NODES]]

    def _moves(self, task: Task, node: int) -> list[tuple[MovablePod, int]] | None:
        """The cheaper of the sets of pods that make room on a node, with a node that each fits."""
        best: list[tuple[MovablePod, int]] | None = None
        pods = self._left[node]
        for order in (pods, sorted(pods, key=lambda pod: (-pod.share, pod.cost, pod.task.key))):
            found = self._moves_in(task, node, order)
            if found is not None and (best is None or _cost(found) < _cost(best)):
                best = found
        return best

    def _moves_in(self, task: Task, node: int, order: Sequence[MovablePod]) -> list[tuple[MovablePod, int]] | None:
        rows = self._rows(task)
        lacking = self._vector(task)[rows] - self._later[rows, node]
        chosen: list[tuple[MovablePod, int]] = []
        before = self._now.copy()
        try:
            for pod in order:
                if (lacking < EPS).all():
                    break
                vector = self._vector(pod.task)
                if not (vector[rows][lacking >= EPS] > 0).any():
                    continue
                target = self._target(pod.task, node)
                if target is None:
                    continue
                self._now[:, target] -= vector
                lacking = lacking - vector[rows]
                chosen.append((pod, target))
            if (lacking >= EPS).any():
                return None
            for pair in sorted(chosen, key=lambda pair: -pair[0].cost):  # without those that are not needed
                vector = self._vector(pair[0].task)[rows]
                if (lacking + vector < EPS).all():
                    lacking = lacking + vector
                    chosen.remove(pair)
        finally:
            self._now = before
        return chosen if sum(pod.share for pod, _ in chosen) <= self._may_move + 1e-9 else None

    def _target(self, task: Task, source: int) -> int | None:
        """A node where a moved pod fits what is idle."""
        if self._session.rules.pre_predicate(task) is not None:
            return None
        accepted = self._session.placement.accepted(task, check_capacity=False)
        accepted[source] = False
        return self._fullest(task, accepted, self._now)

    def _fullest(self, task: Task, accepted: Bools, free: Floats) -> int | None:
        """The node with the least left of those where a pod fits, first among those that no moves could make free; by
        name among equals."""
        rows, needs = self._rows(task), self._vector(task)
        fits = accepted & (free[rows] + EPS >= needs[rows][:, None]).all(axis=0)
        found = np.flatnonzero(fits)
        if not len(found):
            return None
        allocatable = np.maximum(self._session.numbers.allocatable[:, found], 1.0)
        left = (free[:, found] / allocatable).sum(axis=0)
        names = self._session.table.names
        parts = {node: round(float(part), 6) for node, part in zip(found.tolist(), left, strict=True)}
        return min(parts, key=lambda node: (bool(self._left.get(node)), parts[node], names[node]))

    def _vector(self, task: Task) -> Floats:
        return task.spec_class.vector(self._session.table)

    def _rows(self, task: Task) -> list[int]:
        return task.spec_class.checked_rows(self._session.table)


def _cost(moves: Sequence[tuple[MovablePod, int]]) -> tuple[float, int]:
    return sum(pod.cost for pod, _ in moves), len(moves)
