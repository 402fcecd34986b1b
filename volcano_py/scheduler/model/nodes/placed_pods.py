"""PlacedPods: the tasks that take capacity, by node, and their sums in the node table. Volcano: NodeInfo's AddTask,
RemoveTask and UpdateTask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from volcano_py.scheduler.model.changes import Changes
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.resource import EXACT


class PlacedPods:
    """Changed by `Cluster` only."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.on_node: dict[str, dict[str, Task]] = {}
        """By node name and task key; also for nodes without a Node object."""
        self.changes = Changes()
        """Nodes whose object or pods have changed, by name."""

    def put(self, task: Task) -> None:
        """Add a task to its node."""
        self.changes.add(task.node)
        self.on_node.setdefault(task.node, {})[task.key] = task
        self.count(task, +1)

    def put_all(self, tasks: Sequence[Task]) -> None:
        """As `put` for each, with one change of the table for all tasks of a class."""
        columns: dict[tuple[int, bool], tuple[SpecClass, list[int]]] = {}
        if len(tasks) == 1:
            self.put(tasks[0])
            return
        self.changes.add_all(task.node for task in tasks)
        for task in tasks:
            self.on_node.setdefault(task.node, {})[task.key] = task
            i = self._table.index.get(task.node)
            if i is not None:
                columns.setdefault((task.spec_class.id, bool(task.job)), (task.spec_class, []))[1].append(i)
        n, rows = self._table.numbers, len(self._table.rows)
        for (_, of_job), (cls, nodes) in columns.items():
            at, counts = np.unique(np.array(nodes, dtype=np.intp), return_counts=True)
            amounts = cls.vector(self._table)[:, None] * counts
            n.idle[:rows, at] -= amounts
            n.used[:rows, at] += amounts
            n.kube_requested[:rows, at] += amounts
            if not of_job:
                n.foreign[:rows, at] += amounts
            n.kube_pods[at] += counts
            n.kube_nonzero[:, at] += cls.nonzero[:, None] * counts

    def take(self, task: Task) -> None:
        """Remove a task from its node."""
        self.changes.add(task.node)
        here = self.on_node[task.node]
        del here[task.key]
        if not here:
            del self.on_node[task.node]
        self.count(task, -1)

    def replace(self, old: Task, new: Task) -> None:
        """Replace a task by one of the same class, job and node."""
        if not new.takes_capacity or not old.takes_capacity or status.RELEASING in (old.status, new.status):
            if old.takes_capacity:
                self.take(old)
            if new.takes_capacity:
                self.put(new)
            return
        self.changes.add(new.node)
        self.on_node[new.node][new.key] = new

    def release(self, task: Task) -> None:
        """Count a task as releasing: what it holds becomes free later."""
        i = self._table.index.get(task.node)
        if i is not None:
            rows = len(self._table.rows)
            self._table.numbers.releasing[:rows, i] += task.spec_class.vector(self._table)

    def count_node(self, name: str) -> None:
        """Called when a Node object is added: count the tasks that arrived before it."""
        for task in self.on_node.get(name, {}).values():
            self.count(task, +1)

    def count(self, task: Task, sign: int) -> None:
        """Add a task to the sums of its node, or subtract it."""
        i = self._table.index.get(task.node)
        if i is None:
            return
        n, rows = self._table.numbers, len(self._table.rows)
        usage = task.spec_class.usage(self._table, n)
        if sign > 0:
            n.held[:, i] += usage.held
            n.kube[:, i] += usage.kube
        elif max(n.used[:rows, i].tolist()) >= EXACT:
            self.add_up(i)
            return
        else:
            n.held[:, i] -= usage.held
            n.kube[:, i] -= usage.kube
        if not task.job:
            n.foreign[:rows, i] += sign * task.spec_class.vector(self._table)
        if task.status == status.RELEASING:
            n.releasing[:rows, i] += sign * task.spec_class.vector(self._table)

    def add_up(self, node: int) -> None:
        """Compute the sums of a node again, as after an amount that was too large for exact subtraction."""
        n = self._table.numbers
        for column in (n.used, n.kube_requested, n.foreign, n.releasing, n.kube_nonzero):
            column[:, node] = 0.0
        n.idle[:, node] = n.allocatable[:, node]
        n.kube_pods[node] = 0
        for task in self.on_node.get(self._table.names[node], {}).values():
            self.count(task, +1)
