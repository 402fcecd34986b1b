"""Cordoned nodes and taints. Kubernetes: NodeUnschedulable, TaintToleration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Node, Taint, Toleration
from volcano_py.scheduler.framework.node_rules import STATIC
from volcano_py.scheduler.model.tolerations import UNSCHEDULABLE_TAINT, tolerated
from volcano_py.scheduler.profiles.columns import AnyColumns, Bools, Columns, Ints
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import NODES, PODS, Action, Interest
from volcano_py.scheduler.profiles.extension_points import Filter, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.normalise import columns_to_highest, to_highest
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SUCCESS, Status, unresolvable

_CORDONED = unresolvable("node(s) were unschedulable")
_TAINTED = unresolvable("node(s) had untolerated taint(s)")


class NodeUnschedulable(Filter):
    name = "NodeUnschedulable"
    scope = STATIC

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if node.node.spec.unschedulable and not self._tolerates(pod):
            return _CORDONED
        return SUCCESS

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        return _by_group(nodes, lambda node: not node.node.spec.unschedulable or self._tolerates(pod))

    def _tolerates(self, pod: PodInfo) -> bool:
        return tolerated(UNSCHEDULABLE_TAINT, pod.tolerations)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, Action.ADD | Action.TAINT, self._node_helps),
            Interest(PODS, Action.TOLERATION, self._pod_helps),
        )

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        return new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return new is not None and _same(pod, new) and tolerated(UNSCHEDULABLE_TAINT, new.tolerations)


class TaintToleration(Filter, Score):
    name = "TaintToleration"
    scope = STATIC

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return _TAINTED if repels(node.node, pod.tolerations) else SUCCESS

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        return _by_group(nodes, lambda node: not repels(node.node, pod.tolerations))

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        own = [t for t in pod.tolerations if t.effect in ("", "PreferNoSchedule")]
        soft: list[Taint] = [t for t in node.node.spec.taints or () if t.effect == "PreferNoSchedule"]
        return sum(not tolerated(t, own) for t in soft)

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        to_highest(scores, reverse=True)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        return _by_group(nodes, lambda node: self.score(CycleState(), pod, node))

    def normalize_columns(self, scores: Ints) -> Ints:
        return columns_to_highest(scores, reverse=True)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, Action.ADD | Action.TAINT, self._node_helps),
            Interest(PODS, Action.TOLERATION, self._pod_helps),
        )

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        before = old is None or repels(old, pod.tolerations)
        return new is not None and before and not repels(new, pod.tolerations)

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return new is not None and _same(pod, new)


def _by_group(nodes: AnyColumns, answer: Callable[[NodeInfo], int]) -> NDArray[Any] | None:
    """A result for each node that depends on taints and cordon only, computed once for nodes with equal ones."""
    if not isinstance(nodes, Columns):
        return None
    first, groups = nodes.tainted_alike()
    return np.array([answer(node) for node in first])[groups]


def repels(node: Node, tolerations: Sequence[Toleration]) -> bool:
    """Whether a node has a NoSchedule or NoExecute taint that is not tolerated; cordoning does not count."""
    hard = (t for t in node.spec.taints or () if t.effect in ("NoSchedule", "NoExecute"))
    return any(not tolerated(t, tolerations) for t in hard)


def _same(a: PodInfo, b: PodInfo) -> bool:
    return a.pod.metadata.uid == b.pod.metadata.uid
