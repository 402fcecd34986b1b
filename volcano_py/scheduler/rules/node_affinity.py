"""Node selector and node affinity. kube-scheduler: NodeAffinity.

What a class of pods requires is `spec.nodeSelector` (`labels`) and the required node affinity; what it prefers is a
list of terms with weights. Each rule has a form for one node and one for all nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from volcano_py.api.affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from volcano_py.api.core import Node
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.nodes.node_terms import term_matches
from volcano_py.scheduler.rules.arrays import Bools, Ints
from volcano_py.scheduler.rules.node_masks import node_mask


def required_of(affinity: NodeAffinity | None) -> NodeSelector | None:
    """The required node affinity, if there is any."""
    return affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None


def preferred_of(affinity: NodeAffinity | None) -> Sequence[PreferredSchedulingTerm]:
    """The preferred terms."""
    return (affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None) or ()


def selects(selector: NodeSelector | None, node: Node) -> bool:
    """Whether a node matches one of the selector's terms; None: there is no requirement."""
    return selector is None or any(term_matches(t, node) for t in selector.node_selector_terms or ())


def matches(labels: Mapping[str, str] | None, required: NodeSelector | None, node: Node) -> bool:
    """Whether a node has these labels and matches the selector."""
    have = node.metadata.labels or {}
    return all(have.get(k) == v for k, v in (labels or {}).items()) and selects(required, node)


def matching_nodes(cluster: Cluster, labels: Mapping[str, str] | None, required: NodeSelector | None) -> Bools:
    """The nodes that have these labels and match the selector."""
    ok: Bools = np.ones(len(cluster.nodes), dtype=np.bool_)
    for selector in (_as_selector(labels), required):
        if selector is not None:
            ok &= node_mask(cluster, selector)
    return ok


def preference(terms: Sequence[PreferredSchedulingTerm], node: Node) -> int:
    """The sum of the weights of the terms that a node matches; higher is better."""
    return sum(t.weight for t in terms if term_matches(t.preference, node))


def preferences(cluster: Cluster, terms: Sequence[PreferredSchedulingTerm]) -> Ints:
    """The same for all nodes."""
    found: Ints = np.zeros(len(cluster.nodes), dtype=np.int64)
    for t in terms:
        found += t.weight * node_mask(cluster, NodeSelector(node_selector_terms=[t.preference]))
    return found


def named_nodes(required: NodeSelector | None) -> set[str] | None:
    """The only nodes that the terms name; None if one of the terms names no node. Empty: the terms conflict, so that no
    node can match."""
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


def _as_selector(labels: Mapping[str, str] | None) -> NodeSelector | None:
    """`spec.nodeSelector` as a NodeSelector."""
    if not labels:
        return None
    wanted = [NodeSelectorRequirement(key=k, operator="In", values=[v]) for k, v in labels.items()]
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=wanted)])
