"""Node selector and node affinity, for profiles. Kubernetes: NodeAffinity."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from volcano_py.api.affinity import NodeAffinity as NodeAffinityRules
from volcano_py.api.affinity import PreferredSchedulingTerm
from volcano_py.api.core import Node
from volcano_py.scheduler.framework.search.node_rules import STATIC
from volcano_py.scheduler.profiles.columns import AnyColumns, Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unresolvable
from volcano_py.scheduler.rules.arrays import Bools, Ints
from volcano_py.scheduler.rules.node_affinity import (
    matches,
    matching_nodes,
    named_nodes,
    preference,
    preferences,
    preferred_of,
    required_of,
    selects,
)
from volcano_py.scheduler.rules.normalizing import share_of_highest

_REJECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinityArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    added_affinity: NodeAffinityRules | None = None
    """Node affinity of every pod of the profile, in addition to its own."""


class NodeAffinity(PreFilter, Filter, Score):
    name = "NodeAffinity"
    scope = STATIC

    def __init__(self, args: NodeAffinityArguments) -> None:
        added = args.added_affinity or NodeAffinityRules()
        self._required = required_of(added)
        self._preferred = preferred_of(added)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        required = required_of(pod.node_affinity)
        if required is None and self._required is None and not pod.pod.spec.node_selector:
            return None, SKIP
        named = named_nodes(required)
        if named is not None and not named:
            return None, _CONFLICT
        return named, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not selects(self._required, node.node):
            return _ENFORCED
        return SUCCESS if node_matches(pod, node.node) else _REJECTED

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        if not isinstance(nodes, Columns):
            return None
        return nodes.of_model(matching_nodes(nodes.model, None, self._required)) & nodes_of(pod, nodes)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return SUCCESS if self._terms(pod) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return preference(self._terms(pod), node.node)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        return nodes.of_model(preferences(nodes.model, self._terms(pod))) if isinstance(nodes, Columns) else None

    def normalize_columns(self, scores: Ints) -> Ints:
        return share_of_highest(scores, reverse=False).astype(np.int64)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, ActionType.ADD | ActionType.NODE_LABEL, self._node_helps),
            Interest(NODES, ActionType.TAINT),
        )

    def _terms(self, pod: PodInfo) -> list[PreferredSchedulingTerm]:
        return [*self._preferred, *preferred_of(pod.node_affinity)]

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        if new is None or not (node_matches(pod, new) and selects(self._required, new)):
            return False
        return old is None or not (node_matches(pod, old) and selects(self._required, old))


def nodes_of(pod: PodInfo, nodes: Columns) -> Bools:
    """The nodes that satisfy the pod's node selector and required node affinity."""
    required = required_of(pod.node_affinity)
    return nodes.of_model(matching_nodes(nodes.model, pod.pod.spec.node_selector, required))


def node_matches(pod: PodInfo, node: Node) -> bool:
    """The same for one node."""
    return matches(pod.pod.spec.node_selector, required_of(pod.node_affinity), node)
