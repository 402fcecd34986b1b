"""Node selector and node affinity, for sessions. kube-scheduler: NodeAffinity."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.affinity import NodeAffinity as NodeAffinityRules
from volcano_py.api.affinity import NodeSelector
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.node_affinity import matching_nodes, named_nodes, preferences, preferred_of, required_of
from volcano_py.scheduler.rules.normalizing import share_of_highest

CONFLICT = "pod affinity terms conflict"


def conflict(task: Task) -> str | None:
    """The conflict between terms that name different nodes, so that no node can match; None if there is none."""
    return CONFLICT if named_nodes(required_of_class(task.spec_class)) == set() else None


def required_of_class(cls: SpecClass) -> NodeSelector | None:
    """The required node affinity of a class, if there is any."""
    return required_of(_affinity(cls))


def _affinity(cls: SpecClass) -> NodeAffinityRules | None:
    return cls.affinity.node_affinity if cls.affinity else None


class NodeAffinityRule:
    """Rejects nodes that do not match the node selector or the required affinity."""

    name = "NodeAffinity"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) didn't match Pod's node affinity/selector", FitCode.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._cluster = session.cluster

    def applies(self, task: Task) -> bool:
        return bool(task.spec_class.node_selector) or required_of_class(task.spec_class) is not None

    def filter(self, task: Task) -> Codes:
        of = task.spec_class
        return (~matching_nodes(self._cluster, of.node_selector, required_of_class(of))).view(np.int8)


class PreferredNodeAffinity:
    """Scores nodes by the weights of the preferred terms they match, relative to the best candidate."""

    name = "PreferredNodeAffinity"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._cluster = session.cluster
        self._weight = weight

    def applies(self, task: Task) -> bool:
        return bool(preferred_of(_affinity(task.spec_class)))

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        cache = self._cluster.rule_cache()
        key = (self.name, task.spec_class.id)
        if key not in cache:
            cache[key] = preferences(self._cluster, preferred_of(_affinity(task.spec_class)))
        raw: NDArray[Any] = cache[key]
        return self._weight * share_of_highest(raw[candidates], reverse=False)
