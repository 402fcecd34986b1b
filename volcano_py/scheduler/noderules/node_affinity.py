"""Node selector and node affinity. kube-scheduler: NodeAffinity."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.affinity import NodeSelectorTerm, PreferredSchedulingTerm
from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import DOMAIN, STATIC, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.node_terms import term_matches
from volcano_py.scheduler.model.spec_class import SpecClass
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.noderules.normalise import default_normalise

CONFLICT = "pod affinity terms conflict"


def required_terms(cls: SpecClass) -> list[NodeSelectorTerm] | None:
    """The terms of which a node must match one; None if there is no such requirement."""
    affinity = cls.affinity.node_affinity if cls.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return None if required is None else required.node_selector_terms or []


def matching_nodes(session: Session, cls: SpecClass) -> NDArray[np.bool_]:
    """The nodes that satisfy selector and required affinity of a class."""
    terms = required_terms(cls)
    selector = cls.node_selector
    nodes = session.table.objects
    ok = np.ones(len(nodes), dtype=bool)
    if not selector and terms is None:
        return ok
    for i, node in enumerate(nodes):
        labels = node.metadata.labels or {}
        ok[i] = all(labels.get(k) == v for k, v in selector.items()) and (
            terms is None or any(term_matches(t, node) for t in terms)
        )
    return ok


def conflict(task: Task) -> str | None:
    """The conflict between terms that name different nodes, so that no node can match; None if there is none."""
    terms = required_terms(task.spec_class)
    if not terms:
        return None
    for term in terms:
        named: set[str] | None = None
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.operator == "In":
                values = set(field.values or ())
                named = values if named is None else named & values
        if named is None or named:
            return None
    return CONFLICT


class NodeAffinity:
    """Rejects nodes that do not match the node selector or the required affinity."""

    name = "NodeAffinity"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        cls = task.spec_class
        return bool(cls.node_selector) or required_terms(cls) is not None

    def filter(self, task: Task) -> Codes:
        return (~matching_nodes(self._session, task.spec_class)).astype(np.int8)


class PreferredNodeAffinity:
    """Scores nodes by the weights of the preferred terms they match, relative to the best candidate."""

    name = "PreferredNodeAffinity"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._session = session
        self._weight = weight

    def _preferred(self, task: Task) -> list[PreferredSchedulingTerm]:
        affinity = task.spec_class.affinity
        node = affinity.node_affinity if affinity else None
        return (node.preferred_during_scheduling_ignored_during_execution if node else None) or []

    def applies(self, task: Task) -> bool:
        return bool(self._preferred(task))

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        cache = self._session.cluster.rule_cache()
        key = (self.name, task.spec_class.id)
        if key not in cache:
            raw = np.zeros(len(self._session.table))
            for i, node in enumerate(self._session.table.objects):
                raw[i] = sum(t.weight for t in self._preferred(task) if term_matches(t.preference, node))
            cache[key] = raw
        raw_all: NDArray[Any] = cache[key]
        return self._weight * default_normalise(raw_all[candidates], reverse=False)
