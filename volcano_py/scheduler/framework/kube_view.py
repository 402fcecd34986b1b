"""KubeView: the pods on each node as kube-scheduler's own rules count them. Volcano: the session's NodeMap and
PodLister.

It starts with every task that takes capacity on a node, including releasing ones. The predicates plugin updates it
with the session's placements and evictions (an evicted pod is removed at once). Without that plugin it does not change
during the session, as in Volcano.

Counts per node are arrays in `NodeNumbers`; the pods themselves are listed only when a rule reads them
(`on_pods`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers

Listener = Callable[[Task, int, int], None]
"""(task, node column, +1 or −1)."""


class KubeView:
    """Pods on nodes. Rules that need more than counts register a listener."""

    def __init__(self, cluster: Cluster, numbers: NodeNumbers) -> None:
        self._cluster = cluster
        self._numbers = numbers
        self._moves: list[tuple[Task, int, int]] = []
        self._listeners: list[Listener] = []
        self.moves_with_session = False
        """Whether the predicates plugin already counts each placement of the session here."""

    def on_pods(self, listener: Listener) -> None:
        """Call a listener for every pod that was on a node when the session opened, for every move since then, and
        for all later moves."""
        index = self._cluster.nodes.index
        for name, tasks in self._cluster.on_node.items():
            node = index.get(name)
            if node is not None:
                for task in tasks.values():
                    listener(task, node, +1)
        for move in self._moves:
            listener(*move)
        self._listeners.append(listener)

    def move(self, task: Task, node: int, sign: int) -> None:
        """Add a pod to a node (+1) or remove it (−1)."""
        usage = task.spec_class.usage(self._cluster.nodes, self._numbers).kube
        if sign > 0:
            self._numbers.kube[:, node] += usage
        else:
            self._numbers.kube[:, node] -= usage
        self._moves.append((task, node, sign))
        for listener in self._listeners:
            listener(task, node, sign)

    def move_run(self, tasks: Sequence[Task], nodes: Sequence[int]) -> None:
        """Add equal pods to nodes."""
        n = self._numbers
        cls = tasks[0].spec_class
        columns, counts = np.unique(np.array(nodes, dtype=np.intp), return_counts=True)
        n.kube_requested[:, columns] += cls.vector(self._cluster.nodes)[:, None] * counts
        n.kube_nonzero[:, columns] += cls.nonzero[:, None] * counts
        n.kube_pods[columns] += counts
        moves = [(task, node, +1) for task, node in zip(tasks, nodes, strict=True)]
        self._moves += moves
        for listener in self._listeners:
            for move in moves:
                listener(*move)
