"""The tasks on all nodes as columns, to leave out at once the nodes that no eviction could make fit.

Volcano visits node after node. After some hundred evictions most visits find only pods that are leaving already.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import PODS
from volcano_py.scheduler.model.task import Task

Bools = NDArray[np.bool_]
Select = NDArray[np.intp] | slice
"""Which of the placed tasks: their indices, or all."""
ALL = slice(None)
_KEPT = 8
"""Sums by node that are kept: each is as large as the table of nodes."""


class PermittedVictims(NamedTuple):
    """Which tasks a task may evict, before plugins are called."""

    includes: Callable[[Task], bool]
    key: Hashable
    among: Callable[[PlacedTasks, Select], Bools]
    """Those among the selected tasks, and maybe more; tasks with the same `key` have the same ones."""


class PlacedTasks:
    """Columns over the tasks that took capacity on a node when the session opened, and whose job is in the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        index, jobs, models = session.table.index, session.jobs, session.cluster.jobs
        self._of_node: dict[int, NDArray[np.intp]] = {}
        found: list[Task] = []
        for name, here in session.cluster.on_node.items():
            if name in index:
                tasks = [t for t in here.values() if t.job in jobs]
                self._of_node[index[name]] = np.arange(len(found), len(found) + len(tasks))
                found += tasks
        self._queues: dict[str, int] = {}
        self._jobs: dict[str, int] = {}
        queues, numbers = self._queues, self._jobs
        self._slots = np.array([t.slot for t in found], dtype=np.intp)
        self._preemptable = np.array([t.preemptable for t in found], dtype=bool)
        self._best_effort = np.array([t.best_effort for t in found], dtype=bool)
        self._queue = np.array([queues.setdefault(models[t.job].queue, len(queues)) for t in found], dtype=np.intp)
        self._job = np.array([numbers.setdefault(t.job, len(numbers)) for t in found], dtype=np.intp)
        vectors = [t.spec_class.vector(session.table) for t in found]
        self._requests = np.array(vectors).T if vectors else np.zeros((len(session.table.rows), 0))
        self._node = np.zeros(len(found), dtype=np.intp)
        for node, here_ in self._of_node.items():
            self._node[here_] = node
        self._freed: dict[Hashable, tuple[int, NDArray[np.float64]]] = {}

    def evictable(self, select: Select, statuses: tuple[int, ...]) -> Bools:
        """The preemptable tasks that have one of these statuses now."""
        wanted = np.zeros(256, dtype=bool)
        wanted[list(statuses)] = True
        now = np.frombuffer(self._session.statuses, dtype=np.uint8)[self._slots[select]]
        found: Bools = self._preemptable[select] & wanted[now]
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
        """The nodes that would have what the task requests if all permitted victims left them.

        What victims with one key would free is kept, and updated for the nodes on which tasks have moved.
        """
        session = self._session
        n, wanted = session.numbers, task.spec_class.vector(session.table)
        freed = self._freed_by(permitted)
        found = np.ones(len(session.table), dtype=bool)
        for name, row in session.table.rows.items():
            if wanted[row] > 0 and name != PODS:
                free = n.idle[row] + n.releasing[row] - n.pipelined[row] + freed[row]
                found &= free >= wanted[row] - 2 * EPS
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
                    freed[:, node] = self._requests[:, here[permitted.among(self, here)]].sum(axis=1)
        self._freed[key] = (log.position, freed)
        return freed
