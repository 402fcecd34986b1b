"""Cordoned nodes and taints, for sessions. kube-scheduler: NodeUnschedulable, TaintToleration."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.jobs.tolerations import UNSCHEDULABLE_TAINT, tolerated
from volcano_py.scheduler.rules.normalizing import share_of_highest
from volcano_py.scheduler.rules.taints import node_taints


class NodeUnschedulableRule:
    """Rejects cordoned nodes, unless the pod tolerates the taint unschedulable."""

    name = "NodeUnschedulable"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) were unschedulable", FitCode.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._nodes = node_taints(session.cluster)

    def applies(self, task: Task) -> bool:
        return self._nodes.any_cordoned and not tolerated(UNSCHEDULABLE_TAINT, task.spec_class.tolerations)

    def filter(self, task: Task) -> Codes:
        return self._nodes.cordoned(task.spec_class.tolerations).view(np.int8)


class TaintTolerationRule:
    """Rejects nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""

    name = "TaintToleration"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) had untolerated taint(s)", FitCode.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._nodes = node_taints(session.cluster)

    def applies(self, task: Task) -> bool:
        return self._nodes.any_hard

    def filter(self, task: Task) -> Codes:
        return self._nodes.repel(task.spec_class.tolerations).view(np.int8)


class TaintPreference:
    """Scores nodes lower by their untolerated PreferNoSchedule taints, relative to the worst candidate."""

    name = "TaintPreference"
    in_runs = True
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._cluster = session.cluster
        self._weight = weight
        self._nodes = node_taints(session.cluster)

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        return None if self._nodes.any_soft else self._weight * 100.0

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        if not self._nodes.any_soft:
            return np.full(len(candidates), self._weight * 100.0)
        cache = self._cluster.rule_cache()
        key = (self.name, task.spec_class.id)
        if key not in cache:
            cache[key] = self._nodes.disliked(task.spec_class.tolerations)
        raw: NDArray[Any] = cache[key]
        return self._weight * share_of_highest(raw[candidates], reverse=True)
