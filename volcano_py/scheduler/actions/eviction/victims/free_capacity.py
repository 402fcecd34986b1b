"""Selecting the node to free for a task, and the pods to evict there. Volcano: normalPreempt, reclaimForTask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil

import numpy as np

from volcano_py.scheduler.actions.eviction.placed_tasks import PlacedTasks
from volcano_py.scheduler.framework.jobs.victim_order import victims_queue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

_MOST_NODES = 100
"""How many nodes are compared with the first one that can be freed."""

Victims = Callable[[int], list[Task] | None]
"""The permitted victims on a node; None: the node is left out."""


class _LargestRequest:
    """The largest request for each resource of all pods on nodes, as a column."""

    def __init__(self, session: Session) -> None:
        self._table = session.table
        self._of_class: dict[int, list[tuple[int, float, float]]] = {}
        self.column = np.zeros(len(session.table.rows))
        classes = {t.spec_class for here in session.cluster.on_node.values() for t in here.values()}
        for each in classes:
            np.maximum(self.column, each.vector(session.table), out=self.column)

    def beside(self, task: Task) -> list[tuple[int, float, float]]:
        """The rows that a task requests, each with its request and with the largest one of a pod on a node."""
        found = self._of_class.get(task.spec_class.id)
        if found is None:
            request = task.spec_class.vector(self._table)
            rows = map(int, np.flatnonzero(request))
            found = self._of_class[task.spec_class.id] = [(r, request.item(r), self.column.item(r)) for r in rows]
        return found


def free_capacity_for(
    session: Session,
    statement: Statement,
    task: Task,
    nodes: Iterable[int],
    victims: Victims,
    fits: Callable[[int], bool],
    reason: str,
    may: Callable[[Task], bool] | None = None,
) -> bool:
    """Evict on one of the nodes until the task fits, and pipeline it there; returns whether that was possible.

    `nodes`: those that would have the capacity without their permitted victims, in the order in which they are tried.
    `may`: whether a victim may be evicted after those before it; None: all of them. The first node that works is used;
    with fewest-victims it is compared with the hundred that follow.
    """
    fewest = session.deviations.fewest_victims
    if fewest and (accepted := session.placement.accepted(task)).any():
        # For one member of a gang that does not fit as a whole, a node may need no victim.
        nodes = list(nodes)
        for node in (node for node in nodes if accepted[node]):
            without_victims = Statement(session, statement.evictor)
            if fits(node) and _pipeline(session, statement, without_victims, task, node, reason):
                return True
    floor = _fewest_anywhere(session, task) if fewest else None
    best: tuple[int, int] | None = None
    compared = 0
    for node in nodes:
        if best is not None:
            compared += 1
            if compared > _MOST_NODES:
                break
        if best is not None and _fewest_on(session, task, node) >= best[0]:
            continue
        found = victims(node)
        own = None if found is None else _free(session, statement, task, node, found, fits, reason, floor, may)
        if own is None:
            continue
        cost = len(own.steps)
        if floor is None or cost <= floor:
            if _pipeline(session, statement, own, task, node, reason):
                return True
            continue
        own.discard()
        if best is None or cost < best[0]:
            best = (cost, node)
    if best is None:
        return False
    own = _free(session, statement, task, best[1], victims(best[1]) or [], fits, reason, floor, may)
    return own is not None and _pipeline(session, statement, own, task, best[1], reason)


def _fewest_anywhere(session: Session, task: Task) -> int:
    """A lower bound of the victims on any node: the least lacking amount, in units of the largest pod."""
    requested = session.shared(_LargestRequest, lambda: _LargestRequest(session)).beside(task)
    future = session.shared(PlacedTasks, lambda: PlacedTasks(session)).future.amounts()
    fewest = 1
    for row, request, largest in requested:
        if request <= largest + EPS:
            continue  # one pod can be enough
        lacking = request - future[row].max(initial=0.0)
        if lacking > EPS and largest > 0:
            fewest = max(fewest, ceil((lacking - EPS) / largest))
    return fewest


def _fewest_on(session: Session, task: Task, node: int) -> int:
    """A lower bound of the victims on one node: for each resource the largest pods are evicted."""
    n = session.numbers
    lacking = task.spec_class.vector(session.table) - n.idle[:, node] - n.releasing[:, node] + n.pipelined[:, node]
    rows = np.flatnonzero(lacking > EPS)
    if not len(rows):
        return 0
    here = session.cluster.on_node.get(session.table.names[node], {}).values()
    if not here:
        return len(session.cluster.tasks)
    requests = np.sort(np.array([t.spec_class.vector(session.table)[rows] for t in here]), axis=0)[::-1].cumsum(axis=0)
    return int((requests < lacking[rows] - EPS).sum(axis=0).max()) + 1


def _free(
    session: Session,
    statement: Statement,
    task: Task,
    node: int,
    victims: list[Task],
    fits: Callable[[int], bool],
    reason: str,
    floor: int | None,
    may: Callable[[Task], bool] | None,
) -> Statement | None:
    """Evict in the order of least loss until the task fits; None, without evictions, if it never does.

    `floor`: a lower bound of the victims on any node; evictions without which the task also fits are undone. None: they
    are kept.
    """
    own = Statement(session, statement.evictor)
    order = victims_queue(session, victims, task)
    fitting = fits(node)
    while order and not fitting:
        victim = order.pop()
        if may is None or may(victim):
            own.evict(victim, reason)
            fitting = fits(node)
    if not fitting:
        own.discard()
        return None
    if floor is not None and len(own.steps) > floor:
        own.undo_unneeded(lambda: fits(node))
    return own


def _pipeline(session: Session, statement: Statement, own: Statement, task: Task, node: int, reason: str) -> bool:
    evicted = own.evictions
    if evicted and reason == "preempt" and not session.deviations.kept_nominations:
        # Volcano adds up what the victims request; the resource `pods` does not count.
        evicted = not all(s.task.best_effort for s in own.steps)
    if own.pipeline(task, node, evicted=evicted) is not None:
        own.discard()
        return False
    statement.merge(own)
    return True
