"""Cordoned nodes and taints. kube-scheduler: NodeUnschedulable, TaintToleration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Node, Taint
from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import DOMAIN, STATIC, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.model.tolerations import UNSCHEDULABLE_TAINT, tolerated
from volcano_py.scheduler.noderules.normalise import default_normalise


class NodeUnschedulable:
    """Rejects cordoned nodes, unless the pod tolerates the taint unschedulable."""

    name = "NodeUnschedulable"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) were unschedulable", Code.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._any = session.of_nodes(self.name, lambda nodes: any(n.spec.unschedulable for n in nodes))

    def applies(self, task: Task) -> bool:
        return self._any and not tolerated(UNSCHEDULABLE_TAINT, task.spec_class.tolerations)

    def filter(self, task: Task) -> Codes:
        cordoned = [n.spec.unschedulable for n in self._session.table.objects]
        return np.array(cordoned, dtype=np.int8)


class TaintToleration:
    """Rejects nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""

    name = "TaintToleration"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tainted = session.of_nodes(self.name, lambda nodes: _tainted(nodes, ("NoSchedule", "NoExecute")))

    def applies(self, task: Task) -> bool:
        return bool(self._tainted)

    def filter(self, task: Task) -> Codes:
        codes = np.zeros(len(self._session.table), dtype=np.int8)
        for taints, columns in self._tainted:
            codes[columns] = not all(tolerated(t, task.spec_class.tolerations) for t in taints)
        return codes


class TaintPreference:
    """Scores nodes lower by their untolerated PreferNoSchedule taints, relative to the worst candidate."""

    name = "TaintPreference"
    in_runs = True
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._session = session
        self._weight = weight
        self._tainted = session.of_nodes(self.name, lambda nodes: _tainted(nodes, ("PreferNoSchedule",)))

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        return None if self._tainted else self._weight * 100.0

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        if not self._tainted:
            return np.full(len(candidates), self._weight * 100.0)
        cache = self._session.cluster.rule_cache()
        key = (self.name, task.spec_class.id)
        if key not in cache:
            own = [t for t in task.spec_class.tolerations if t.effect in ("", "PreferNoSchedule")]
            raw = np.zeros(len(self._session.table))
            for taints, columns in self._tainted:
                raw[columns] = sum(not tolerated(t, own) for t in taints)
            cache[key] = raw
        raw_all: NDArray[Any] = cache[key]
        return self._weight * default_normalise(raw_all[candidates], reverse=True)


def _tainted(nodes: Sequence[Node], effects: tuple[str, ...]) -> list[tuple[list[Taint], list[int]]]:
    """The taints of these effects that nodes have, with the columns of the nodes that have the same: few, although many
    nodes may be tainted."""
    found: dict[tuple[tuple[str, str, str], ...], tuple[list[Taint], list[int]]] = {}
    for i, node in enumerate(nodes):
        taints = [t for t in node.spec.taints or () if t.effect in effects]
        if taints:
            key = tuple((t.key, t.value, t.effect) for t in taints)
            found.setdefault(key, (taints, []))[1].append(i)
    return list(found.values())
