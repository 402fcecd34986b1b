"""Even spreading over topology domains, for sessions. kube-scheduler: PodTopologySpread with system defaults."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.affinity import TopologySpreadConstraint
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Bools, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import arrays_kept, drop_oldest
from volcano_py.scheduler.noderules.node_affinity import required_of_class
from volcano_py.scheduler.noderules.pod_index import PodIndex, pod_index
from volcano_py.scheduler.rules.arrays import Ints
from volcano_py.scheduler.rules.domains import domains
from volcano_py.scheduler.rules.spread import (
    OWNERS,
    SYSTEM_DEFAULTS,
    Counting,
    DomainPods,
    Preference,
    SpreadConstraint,
    countings,
    default_selectors,
    included,
    of_pod,
    scores,
    with_selectors,
)


class TopologySpread:
    """Rejects nodes whose domain would exceed the emptiest domain by more than maxSkew pods."""

    name = "PodTopologySpread"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    limits_pods = True
    reasons = [
        Reason("node(s) didn't match pod topology spread constraints (missing required label)", FitCode.UNRESOLVABLE),
        Reason("node(s) didn't match pod topology spread constraints", FitCode.UNSCHEDULABLE),
    ]

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        return any(c.when_unsatisfiable == "DoNotSchedule" for c in task.spec_class.spread)

    def filter(self, task: Task) -> Codes:
        index = pod_index(self._session)
        constraints = _own(task, "DoNotSchedule")
        codes: NDArray[np.int8] | None = None
        labels = task.pod.metadata.labels or {}
        for c, counting in zip(constraints, self._counting(task, constraints), strict=True):
            found = DomainPods(c, counting, _pods(index, task.namespace, c), labels).of_nodes()
            codes = found if codes is None else np.where(codes == 0, found, codes)
        assert codes is not None  # `applies`
        return codes

    def _counting(self, task: Task, constraints: list[SpreadConstraint]) -> list[Counting]:
        """By constraint: its domains, the nodes whose pods are counted, and the domains that have such nodes."""
        cluster = self._session.cluster
        cache = cluster.rule_cache()
        key = ("spread-counting", task.spec_class.id)
        if key not in cache:
            members = [_included(self._session, task, c) for c in constraints]
            drop_oldest(cache, arrays_kept(len(cluster.nodes)))
            cache[key] = countings([domains(cluster, c.key) for c in constraints], members)
        found: list[Counting] = cache[key]
        return found


class SpreadPreference:
    """Scores nodes higher the fewer matching pods are in their domains."""

    name = "SpreadPreference"
    in_runs = True
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._session = session
        self._weight = weight
        others = session.cluster.others
        self._defaults = any(others.get(kind) for kind in ("Service", *(kind for _, kind in OWNERS)))

    def applies(self, task: Task) -> bool:
        return self._defaults or bool(task.spec_class.spread)

    def constant(self, task: Task) -> float | None:
        return None if self._constraints(task) else 0.0

    def _constraints(self, task: Task) -> list[SpreadConstraint]:
        if task.spec_class.spread:
            return _own(task, "ScheduleAnyway")
        selectors = default_selectors(task.pod, self._session.cluster) if self._defaults else ()
        return [with_selectors(c, selectors) for c in SYSTEM_DEFAULTS] if selectors else []

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        session = self._session
        constraints = self._constraints(task)
        if not constraints:
            return np.zeros(len(candidates))
        index = pod_index(session)
        preferences = [
            Preference(c, domains(session.cluster, c.key), _pods(index, task.namespace, c), _included(session, task, c))
            for c in constraints
        ]
        need_all = bool(task.spec_class.spread)
        return (self._weight * scores(preferences, candidates, need_all)).astype(np.float64)


def _own(task: Task, when: str) -> list[SpreadConstraint]:
    """The constraints of the pod with that `whenUnsatisfiable`."""
    labels = task.pod.metadata.labels or {}
    spread: list[TopologySpreadConstraint] = task.spec_class.spread
    return [of_pod(c, labels) for c in spread if c.when_unsatisfiable == when]


def _included(session: Session, task: Task, c: SpreadConstraint) -> Bools:
    """The nodes that count as members of domains."""
    cache, of = session.cluster.rule_cache(), task.spec_class
    key = (f"spread-members {c.affinity_counts} {c.taints_count}", of.id)
    if key not in cache:
        cache[key] = included(session.cluster, c, of.node_selector, required_of_class(of), of.tolerations)
    found: Bools = cache[key]
    return found


def _pods(index: PodIndex, namespace: str, constraint: SpreadConstraint) -> Ints:
    """Per node, the namespace's pods that are selected and not being deleted."""
    total: Ints | None = None
    for c in index.label_classes(constraint.selectors[0]) if constraint.counts else ():
        if c.namespace == namespace and constraint.selects(c.labels):
            total = c.live.copy() if total is None else total + c.live
    return np.zeros(index.nodes, dtype=np.int64) if total is None else total
