"""Cordoned nodes and taints, for profiles. Kubernetes: NodeUnschedulable, TaintToleration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from volcano_py.api.core import Node
from volcano_py.scheduler.framework.search.node_rules import STATIC
from volcano_py.scheduler.model.jobs.tolerations import UNSCHEDULABLE_TAINT, tolerated
from volcano_py.scheduler.profiles.columns import AnyColumns, Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status, unresolvable
from volcano_py.scheduler.rules.arrays import Bools, Ints
from volcano_py.scheduler.rules.normalizing import share_of_highest
from volcano_py.scheduler.rules.taints import cordoned, disliked, repels

_CORDONED = unresolvable("node(s) were unschedulable")
_TAINTED = unresolvable("node(s) had untolerated taint(s)")


class NodeUnschedulable(Filter):
    name = "NodeUnschedulable"
    scope = STATIC

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return _CORDONED if cordoned(node.node, pod.tolerations) else SUCCESS

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        return ~nodes.of_model(nodes.taints.cordoned(pod.tolerations)) if isinstance(nodes, Columns) else None

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, ActionType.ADD | ActionType.TAINT, self._node_helps),
            Interest(PODS, ActionType.TOLERATION, self._pod_helps),
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
        return ~nodes.of_model(nodes.taints.repel(pod.tolerations)) if isinstance(nodes, Columns) else None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return disliked(node.node, pod.tolerations)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        return nodes.of_model(nodes.taints.disliked(pod.tolerations)) if isinstance(nodes, Columns) else None

    def normalize_columns(self, scores: Ints) -> Ints:
        return share_of_highest(scores, reverse=True).astype(np.int64)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, ActionType.ADD | ActionType.TAINT, self._node_helps),
            Interest(PODS, ActionType.TOLERATION, self._pod_helps),
        )

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        before = old is None or repels(old, pod.tolerations)
        return new is not None and before and not repels(new, pod.tolerations)

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return new is not None and _same(pod, new)


def _same(a: PodInfo, b: PodInfo) -> bool:
    return a.pod.metadata.uid == b.pod.metadata.uid
