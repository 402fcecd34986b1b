"""The tasks on all nodes as columns, to exclude at once the nodes that no eviction can make fit.

Volcano visits one node after another. After some hundred evictions, most nodes have only terminating pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import PODS
from volcano_py.scheduler.model.spec_class import SpecClass
from volcano_py.scheduler.model.task import Task

Bools = NDArray[np.bool_]
Select = NDArray[np.intp] | slice
"""A selection of the placed tasks: their indices, or all."""
ALL = slice(None)
_KEPT = 8
"""The number of sums by node that are kept; each is as large as the table of nodes."""


class PermittedVictims(NamedTuple):
    """The tasks that a task may evict, before plugins are called."""

    includes: Callable[[Task], bool]
    key: Hashable
    among: Callable[[PlacedTasks, Select], Bools]
    """The permitted tasks among the selected ones, possibly with more; equal for tasks with the same `key`."""


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
        self._queues: dict[str, int] = {}
        self._jobs: dict[str, int] = {}
        queues, numbers, count = self._queues, self._jobs, len(found)
        self._slots = np.fromiter(map(attrgetter("slot"), found), np.intp, count)
        self._preemptable = np.fromiter(map(attrgetter("preemptable"), found), np.bool_, count)
        self._best_effort = np.fromiter(map(attrgetter("best_effort"), found), np.bool_, count)
        self._job = np.fromiter((numbers.setdefault(t.job, len(numbers)) for t in found), np.intp, count)
        of_job = [queues.setdefault(models[uid].queue, len(queues)) for uid in numbers]
        self._queue = np.array(of_job, dtype=np.intp)[self._job]
        classes: dict[SpecClass, int] = {}
        of_class = np.fromiter((classes.setdefault(t.spec_class, len(classes)) for t in found), np.intp, count)
        vectors = [c.vector(session.table) for c in classes]
        self._requests = np.array(vectors).T[:, of_class] if vectors else np.zeros((len(session.table.rows), 0))
        counts = [here.stop - here.start for here in self._of_node.values()]
        self._node = np.repeat(np.array(list(self._of_node), dtype=np.intp), counts)
        self._freed: dict[Hashable, tuple[int, NDArray[np.float64]]] = {}

    def evictable(self, select: Select, statuses: tuple[int, ...]) -> Bools:
        """The preemptable tasks whose status is one of these."""
        is_selected = np.zeros(256, dtype=bool)
        is_selected[list(statuses)] = True
        now = np.frombuffer(self._session.statuses, dtype=np.uint8)[self._slots[select]]
        found: Bools = self._preemptable[select] & is_selected[now]
        return found

    def best_effort(self, select: Select) -> Bools:
        return self._best_effort[select]

    def in_queue(self, select: Select, name: str) -> Bools:
        found: Bools = self._queue[select] == self._queues.get(name, -1)
        return found

    def of_job(self, select: Select, uid: str) -> Bools:
        found: Bools = self._job[select] == self._jobs.get(uid, -1)
        return found

    def freeable(self, task: Task, permitted: PermittedVictims) -> Bools:
        """The nodes that would have the requested capacity without their permitted victims.

        The capacity that victims with one key would free is kept, and updated for the nodes on which tasks have moved.
        """
        session = self._session
        n, request = session.numbers, task.spec_class.vector(session.table)
        freed = self._freed_by(permitted)
        found = np.ones(len(session.table), dtype=bool)
        for name, row in session.table.rows.items():
            if request[row] > 0 and name != PODS:
                free = n.idle[row] + n.releasing[row] - n.pipelined[row] + freed[row]
                found &= free >= request[row] - 2 * EPS
        return found

    def _freed_by(self, permitted: PermittedVictims) -> NDArray[np.float64]:
        log, key = self._session.numbers.log, permitted.key
        kept = self._freed.pop(key, None)
        if kept is None:
            chosen = permitted.among(self, ALL)
            nodes, count = self._node[chosen], len(self._session.table)
            freed = np.array([np.bincount(nodes, weights=row[chosen], minlength=count) for row in self._requests])
            if len(self._freed) >= _KEPT:
                del self._freed[next(iter(self._freed))]
        else:
            freed = kept[1]
            for node in map(int, log.since(kept[0])):
                here = self._of_node.get(node)
                if here is not None:
                    freed[:, node] = self._requests[:, here][:, permitted.among(self, here)].sum(axis=1)
        self._freed[key] = (log.position, freed)
        return freed
