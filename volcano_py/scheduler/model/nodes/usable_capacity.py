"""Usable capacity: what the jobs of this scheduler can share (deviation usable-capacity). Volcano divides the whole
cluster.

Not usable is what pods of other schedulers hold, and what is idle on nodes whose taints no pod of this scheduler
tolerates. If queues divide more than is usable, they appear to be within their shares while another queue gets nothing.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from volcano_py.api.core import Taint, Toleration
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.jobs.tolerations import repelling, tolerated
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_Key = tuple[tuple[str, str, str, str], ...]


class UsableCapacity:
    """Tracks the tolerations of the scheduler's pods, and computes which nodes they can use."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._pods: Counter[_Key] = Counter()
        """The number of the scheduler's pods with these tolerations."""
        self._tolerations: dict[_Key, list[Toleration]] = {}
        self._changes = 0
        self._closed: tuple[tuple[int, int], list[int]] = ((-1, -1), [])

    def add(self, task: Task, sign: int) -> None:
        """Count a pod of the scheduler that was added or removed."""
        tolerations = task.spec_class.tolerations
        if not tolerations:
            return
        key = tuple((t.key, t.operator, t.value, t.effect) for t in tolerations)
        before = self._pods[key]
        self._pods[key] = before + sign
        if before == 0:
            self._tolerations[key] = tolerations
            self._changes += 1
        elif before + sign == 0:
            del self._tolerations[key], self._pods[key]
            self._changes += 1

    def closed_nodes(self) -> list[int]:
        """The columns of nodes that no pod of the scheduler tolerates."""
        version = (self._table.spec_generation, self._changes)
        if self._closed[0] != version:
            nodes = ((i, repelling(node)) for i, node in enumerate(self._table.objects))
            self._closed = (version, [i for i, taints in nodes if taints and not self._open(taints)])
        return self._closed[1]

    def _open(self, taints: list[Taint]) -> bool:
        return any(all(tolerated(t, own) for t in taints) for own in self._tolerations.values())

    def total(self, *, closed_too: bool = False) -> Resource:
        """The usable capacity of all nodes, with the resources that `NodeTable.total` has.

        `closed_too`: including the nodes that no pod of the scheduler tolerates. A Job that waits for admission has no
        pods, so its tolerations are unknown.
        """
        table = self._table
        count, rows = len(table.names), len(table.rows)
        n = table.numbers
        usable = np.maximum(n.allocatable[:rows, :count] - n.foreign[:rows, :count], 0.0)
        closed = [] if closed_too else self.closed_nodes()
        if closed:
            usable[:, closed] = n.used[:rows, closed] - n.foreign[:rows, closed]
        sums = usable.sum(axis=1)
        total = table.total()
        total.milli_cpu, total.memory = float(sums[0]), float(sums[1])
        for name in set(total.keys()) - {CPU, MEMORY}:
            total[name] = float(sums[table.rows[name]])
        return total
