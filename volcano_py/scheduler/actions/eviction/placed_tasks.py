"""The tasks on all nodes as columns, to exclude at once the nodes that no eviction can make fit.

Volcano visits one node after another. After some hundred evictions, most nodes have only terminating pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.actions.eviction.victims.future_capacity import FutureCapacity
from volcano_py.scheduler.framework.kernels.choice import FEW_COLUMNS
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import drop_oldest
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import PODS

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
_KEPT = 8
"""The number of sums by node that are kept; each is as large as the table of nodes."""


class PermittedVictims(NamedTuple):
    """The tasks that a task may evict, before plugins are called."""

    includes: Callable[[Task], bool]
    key: Hashable
    among: Callable[[PlacedTasks], Bools]
    """The tasks that are permitted while they have one of `statuses`, possibly with more; equal for tasks with the
    same `key`, and constant in a session."""
    statuses: tuple[int, ...]

    def on_node(self, session: Session, node: int) -> list[Task]:
        """The permitted tasks on a node, the youngest first."""
        return [v for v in session.on_node(node) if self.includes(v)]


class _Freed:
    """What the permitted victims with one key request, by node, up to a position in the log of changed columns."""

    __slots__ = ("amounts", "nodes", "permitted", "position", "selects")

    def __init__(self, permitted: Bools, statuses: tuple[int, ...]) -> None:
        self.permitted = permitted
        """By placed task: whether it is permitted in one of the statuses."""
        self.selects = np.zeros(256, dtype=bool)
        """By status."""
        self.selects[list(statuses)] = True
        self.position = -1
        self.amounts: Floats = np.zeros((0, 0))
        self.nodes: dict[int, tuple[int, Bools]] = {}
        """By class: the nodes that would have the requested capacity, and up to which position."""


class PlacedTasks:
    """Columns over the tasks that took capacity on a node when the session opened, and whose job is in the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        index, uids, models = session.table.index, session.jobs.uids(), session.cluster.jobs
        self._of_node: dict[int, slice] = {}
        """The tasks of each node, which follow one another."""
        found: list[Task] = []
        for name, here in session.cluster.on_node.items():
            if name in index:
                start = len(found)
                found += [t for t in here.values() if t.job in uids]
                self._of_node[index[name]] = slice(start, len(found))
        self._slots = np.array([t.slot for t in found], dtype=np.intp)
        self._preemptable = np.array([t.preemptable for t in found], dtype=np.bool_)
        self._best_effort = np.array([t.best_effort for t in found], dtype=np.bool_)
        of_task = [t.job for t in found]
        self._jobs = {uid: number for number, uid in enumerate(dict.fromkeys(of_task))}
        self._job = np.array([self._jobs[uid] for uid in of_task], dtype=np.intp)
        of_job = [models[uid].queue for uid in self._jobs]
        self._queues = {name: number for number, name in enumerate(dict.fromkeys(of_job))}
        self._queue = np.array([self._queues[name] for name in of_job], dtype=np.intp)[self._job]
        classes = [t.spec_class for t in found]
        columns = {cls: column for column, cls in enumerate(dict.fromkeys(classes))}
        of_class = np.array([columns[cls] for cls in classes], dtype=np.intp)
        vectors = [cls.vector(session.table) for cls in columns]
        self._requests = np.array(vectors).T[:, of_class] if vectors else np.zeros((len(session.table.rows), 0))
        counts = [here.stop - here.start for here in self._of_node.values()]
        self._node = np.repeat(np.array(list(self._of_node), dtype=np.intp), counts)
        self._freed: dict[Hashable, _Freed] = {}
        self.future = FutureCapacity(session)

    def evictable(self) -> Bools:
        """The preemptable tasks."""
        return self._preemptable

    def best_effort(self) -> Bools:
        return self._best_effort

    def in_queue(self, name: str) -> Bools:
        found: Bools = self._queue == self._queues.get(name, -1)
        return found

    def jobs_in(self, queues: Collection[str]) -> list[str]:
        """The UIDs of the jobs in some queues, in the order of their names."""
        numbers = [self._queues[name] for name in queues if name in self._queues]
        jobs = np.unique(self._job[np.isin(self._queue, numbers)])
        names = list(self._jobs)
        return sorted(names[job] for job in jobs)

    def of_job(self, uid: str) -> Bools:
        found: Bools = self._job == self._jobs.get(uid, -1)
        return found

    def freeable(self, task: Task, permitted: PermittedVictims) -> Bools:
        """The nodes that would have the requested capacity without their permitted victims; not to be changed.

        The result is kept by class, and updated for the nodes on which tasks have moved.
        """
        log = self._session.numbers.log
        freed, future = self._freed_by(permitted), self.future.amounts()
        request = task.spec_class.vector(self._session.table)
        rows = [row for name, row in self._session.table.rows.items() if request[row] > 0 and name != PODS]
        known = freed.nodes.get(task.spec_class.id)
        changed = None if known is None else log.since(known[0])
        if known is None or changed is None or len(changed) > FEW_COLUMNS:
            found = np.ones(len(self._session.table), dtype=bool)
            for row in rows:
                found &= future[row] + freed.amounts[row] >= request[row] - 2 * EPS
        else:
            found = known[1]
            for node in changed:
                found[node] = all(
                    future.item(row, node) + freed.amounts.item(row, node) >= request.item(row) - 2 * EPS
                    for row in rows
                )
        drop_oldest(freed.nodes, _KEPT)
        freed.nodes[task.spec_class.id] = (log.position, found)
        return found

    def _freed_by(self, permitted: PermittedVictims) -> _Freed:
        log = self._session.numbers.log
        freed = self._freed.get(permitted.key)
        statuses = np.frombuffer(self._session.statuses, dtype=np.uint8)
        if freed is None:
            freed = _Freed(permitted.among(self), permitted.statuses)
            chosen = freed.permitted & freed.selects[statuses[self._slots]]
            nodes, count = self._node[chosen], len(self._session.table)
            sums = (np.bincount(nodes, weights=row[chosen], minlength=count) for row in self._requests)
            freed.amounts = np.array(list(sums))
            drop_oldest(self._freed, _KEPT)
            self._freed[permitted.key] = freed
        elif freed.position != log.position:
            for node in log.since(freed.position):
                here = self._of_node.get(node)
                if here is not None:
                    chosen = freed.permitted[here] & freed.selects[statuses[self._slots[here]]]
                    freed.amounts[:, node] = self._requests[:, here][:, chosen].sum(axis=1)
        freed.position = log.position
        return freed
