"""Node selector and node affinity. Kubernetes: NodeAffinity."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from volcano_py.api.affinity import NodeAffinity as NodeAffinityRules
from volcano_py.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from volcano_py.api.core import Node
from volcano_py.scheduler.framework.node_rules import STATIC
from volcano_py.scheduler.model.node_terms import term_matches
from volcano_py.scheduler.profiles.columns import AnyColumns, Bools, Columns, Ints
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import NODES, Action, Interest
from volcano_py.scheduler.profiles.extension_points import Filter, PreFilter, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.normalise import columns_to_highest, to_highest
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status, unresolvable

_REJECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = unresolvable("pod affinity terms conflict")


class Arguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    added_affinity: NodeAffinityRules | None = None
    """Node affinity of every pod of the profile, in addition to its own."""


class NodeAffinity(PreFilter, Filter, Score):
    name = "NodeAffinity"
    scope = STATIC

    def __init__(self, args: Arguments) -> None:
        added = args.added_affinity or NodeAffinityRules()
        self._required = added.required_during_scheduling_ignored_during_execution
        self._preferred = added.preferred_during_scheduling_ignored_during_execution or []

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        required = pod.node_affinity.required_during_scheduling_ignored_during_execution
        if required is None and self._required is None and not pod.pod.spec.node_selector:
            return None, SKIP
        named = _named_nodes(required)
        if named is not None and not named:
            return None, _CONFLICT
        return named, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not _selects(self._required, node.node):
            return _ENFORCED
        return SUCCESS if node_matches(pod, node.node) else _REJECTED

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        if not isinstance(nodes, Columns):
            return None
        ok: Bools = np.ones(len(nodes), dtype=np.bool_)
        own = pod.node_affinity.required_during_scheduling_ignored_during_execution
        for selector in (self._required, as_selector(pod.pod.spec.node_selector), own):
            if selector is not None:
                ok &= nodes.matching(selector)
        return ok

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return SUCCESS if self._terms(pod) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return sum(t.weight for t in self._terms(pod) if term_matches(t.preference, node.node))

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        to_highest(scores, reverse=False)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        if not isinstance(nodes, Columns):
            return None
        scores: Ints = np.zeros(len(nodes), dtype=np.int64)
        for t in self._terms(pod):
            scores += t.weight * nodes.matching(NodeSelector(node_selector_terms=[t.preference]))
        return scores

    def normalize_columns(self, scores: Ints) -> Ints:
        return columns_to_highest(scores, reverse=False)

    def interests(self) -> Sequence[Interest]:
        return (Interest(NODES, Action.ADD | Action.NODE_LABEL, self._node_helps), Interest(NODES, Action.TAINT))

    def _terms(self, pod: PodInfo) -> list[PreferredSchedulingTerm]:
        return [*self._preferred, *(pod.node_affinity.preferred_during_scheduling_ignored_during_execution or ())]

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        if new is None or not (node_matches(pod, new) and _selects(self._required, new)):
            return False
        return old is None or not (node_matches(pod, old) and _selects(self._required, old))


def as_selector(labels: dict[str, str] | None) -> NodeSelector | None:
    """`spec.nodeSelector` as a NodeSelector."""
    if not labels:
        return None
    wanted = [NodeSelectorRequirement(key=k, operator="In", values=[v]) for k, v in labels.items()]
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=wanted)])


def node_matches(pod: PodInfo, node: Node) -> bool:
    """Whether a node satisfies the pod's node selector and required node affinity."""
    labels = node.metadata.labels or {}
    if any(labels.get(k) != v for k, v in (pod.pod.spec.node_selector or {}).items()):
        return False
    return _selects(pod.node_affinity.required_during_scheduling_ignored_during_execution, node)


def _selects(selector: NodeSelector | None, node: Node) -> bool:
    return selector is None or any(term_matches(t, node) for t in selector.node_selector_terms or ())


def _named_nodes(required: NodeSelector | None) -> set[str] | None:
    """The only nodes that the terms name; None if one of the terms names no node."""
    if required is None or not required.node_selector_terms:
        return None
    found: set[str] = set()
    for term in required.node_selector_terms:
        named = _named_by(term)
        if named is None:
            return None
        found |= named
    return found


def _named_by(term: NodeSelectorTerm) -> set[str] | None:
    named: set[str] | None = None
    for field in term.match_fields or ():
        if field.key == "metadata.name" and field.operator == "In":
            values = set(field.values or ())
            named = values if named is None else named & values
    return named
