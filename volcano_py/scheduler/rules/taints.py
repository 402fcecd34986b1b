"""Cordoned nodes and taints. kube-scheduler: NodeUnschedulable, TaintToleration.

Each function is about one node and the tolerations of a class of pods; `NodeTaints` computes it for all nodes, once for
each group of nodes with the same taints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from volcano_py.api.core import Node, Toleration
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.tolerations import UNSCHEDULABLE_TAINT, tolerated
from volcano_py.scheduler.rules.arrays import Bools, Indices, Ints

HARD = ("NoSchedule", "NoExecute")
SOFT = "PreferNoSchedule"


def cordoned(node: Node, tolerations: Sequence[Toleration]) -> bool:
    """Whether a node is cordoned for pods with these tolerations."""
    return node.spec.unschedulable and not tolerated(UNSCHEDULABLE_TAINT, tolerations)


def repels(node: Node, tolerations: Sequence[Toleration]) -> bool:
    """Whether a node has a NoSchedule or NoExecute taint that is not tolerated; cordoning does not count."""
    return any(t.effect in HARD and not tolerated(t, tolerations) for t in node.spec.taints or ())


def disliked(node: Node, tolerations: Sequence[Toleration]) -> int:
    """The number of PreferNoSchedule taints that are not tolerated; lower is better."""
    own = [t for t in tolerations if t.effect in ("", SOFT)]
    return sum(t.effect == SOFT and not tolerated(t, own) for t in node.spec.taints or ())


class NodeTaints:
    """The same for all nodes: few groups of nodes with equal taints, although many nodes may be tainted."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        numbers: dict[object, int] = {}
        self._first: list[Node] = []
        """One node of each group."""
        self._group: Indices = np.zeros(len(nodes), dtype=np.intp)
        for i, node in enumerate(nodes):
            taints = tuple((t.key, t.value, t.effect) for t in node.spec.taints or ())
            self._group[i] = numbers.setdefault((node.spec.unschedulable, taints), len(numbers))
            if len(self._first) < len(numbers):
                self._first.append(node)
        effects = {t.effect for node in self._first for t in node.spec.taints or ()}
        self.any_cordoned = any(node.spec.unschedulable for node in self._first)
        self.any_hard = not effects.isdisjoint(HARD)
        self.any_soft = SOFT in effects

    def cordoned(self, tolerations: Sequence[Toleration]) -> Bools:
        return np.array(self._of_groups(cordoned, tolerations), dtype=np.bool_)[self._group]

    def repel(self, tolerations: Sequence[Toleration]) -> Bools:
        return np.array(self._of_groups(repels, tolerations), dtype=np.bool_)[self._group]

    def disliked(self, tolerations: Sequence[Toleration]) -> Ints:
        return np.array(self._of_groups(disliked, tolerations), dtype=np.int64)[self._group]

    def _of_groups(
        self, answer: Callable[[Node, Sequence[Toleration]], int], tolerations: Sequence[Toleration]
    ) -> list[int]:
        return [answer(node, tolerations) for node in self._first]


def node_taints(cluster: Cluster) -> NodeTaints:
    """The taints of the nodes of a cluster, kept until one of them changes."""
    return cluster.derived("taints of nodes", cluster.nodes.spec_generation, lambda: NodeTaints(cluster.nodes.objects))
