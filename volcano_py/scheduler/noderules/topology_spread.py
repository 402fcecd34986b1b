"""Even spreading over topology domains. kube-scheduler: PodTopologySpread with system defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.affinity import TopologySpreadConstraint
from volcano_py.api.meta import LabelSelector
from volcano_py.api.selector import check, matches
from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import DOMAIN, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.node_table import arrays_kept, drop_oldest
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.noderules.node_affinity import nodes_of_class
from volcano_py.scheduler.noderules.node_labels import Domains, domains
from volcano_py.scheduler.noderules.pod_index import OWNERS, PodIndex, pod_index
from volcano_py.scheduler.rules.taints import node_taints

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_Selects = Callable[[dict[str, str]], bool]


class _Constraint(NamedTuple):
    key: str
    max_skew: int
    min_domains: int
    selects: _Selects
    selector: LabelSelector | None
    """The label selector alone; `selects` also compares the values of matchLabelKeys."""
    empty: bool
    """Whether it selects all pods; kube-scheduler then counts none."""
    affinity_counts: bool
    """Whether nodes that the selector or affinity excludes are no domains (the default)."""
    taints_count: bool
    """Whether nodes with untolerated taints are no domains (not the default)."""


class _Counting(NamedTuple):
    """The part of a constraint that depends on the pod's class and the Node objects only."""

    domains: Domains
    counted: NDArray[np.bool_]
    exists: NDArray[np.bool_]


class TopologySpread:
    """Rejects nodes whose domain would exceed the emptiest domain by more than maxSkew pods."""

    name = "PodTopologySpread"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [
        Reason("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE),
        Reason("node(s) didn't match pod topology spread constraints", Code.UNSCHEDULABLE),
    ]

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        return any(c.when_unsatisfiable == "DoNotSchedule" for c in task.spec_class.spread)

    def filter(self, task: Task) -> Codes:
        session = self._session
        index = pod_index(session)
        constraints = [_read(c, task) for c in task.spec_class.spread if c.when_unsatisfiable == "DoNotSchedule"]
        codes = np.zeros(len(session.table), dtype=np.int8)
        labels = task.pod.metadata.labels or {}
        for c, found in zip(constraints, self._counting(task, constraints), strict=True):
            d, counted, exists = found
            sums = d.sums(np.where(counted, _pods(index, task.namespace, c), 0))
            lowest = int(sums[exists].min()) if exists.any() else 0
            if int(exists.sum()) < c.min_domains:
                lowest = 0
            # One result for each domain, and a last one for nodes without the label, whose number is -1.
            answers = np.append(np.where(sums + int(c.selects(labels)) - lowest > c.max_skew, 2, 0), 1)
            codes = np.where(codes == 0, answers[d.codes], codes).astype(np.int8)
        return codes

    def _counting(self, task: Task, constraints: list[_Constraint]) -> list[_Counting]:
        """By constraint: its domains, the nodes whose pods are counted, and the domains that have such nodes."""
        cache = self._session.cluster.rule_cache()
        key = ("spread-counting", task.spec_class.id)
        if key not in cache:
            all_domains = [domains(self._session.cluster, c.key) for c in constraints]
            has_keys = np.ones(len(self._session.table), dtype=bool)
            for d in all_domains:
                has_keys &= d.codes >= 0
            made = []
            for c, d in zip(constraints, all_domains, strict=True):
                counted = has_keys & _included(self._session, task, c)
                exists = np.zeros(d.size, dtype=bool)
                exists[d.codes[counted]] = True
                made.append(_Counting(d, counted, exists))
            drop_oldest(cache, arrays_kept(len(has_keys)))
            cache[key] = made
        found: list[_Counting] = cache[key]
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
        return None if self._constraints(task)[0] else 0.0

    def _constraints(self, task: Task) -> tuple[list[_Constraint], bool]:
        """The soft constraints, and whether nodes must have all their keys."""
        if task.spec_class.spread:
            soft = [c for c in task.spec_class.spread if c.when_unsatisfiable == "ScheduleAnyway"]
            return [_read(c, task) for c in soft], True
        selectors = _default_selectors(self._session, task) if self._defaults else []
        if not selectors:
            return [], False

        def selects(other: dict[str, str]) -> bool:
            return all(matches(selector, other) for selector in selectors)

        return [
            _Constraint(HOSTNAME, 3, 1, selects, selectors[0], False, True, False),
            _Constraint(ZONE, 5, 1, selects, selectors[0], False, True, False),
        ], False

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        session = self._session
        constraints, need_all = self._constraints(task)
        if not constraints:
            return np.zeros(len(candidates))
        index = pod_index(session)
        all_domains = [domains(session.cluster, c.key) for c in constraints]
        has_keys = np.ones(len(session.table), dtype=bool)
        if need_all:
            for d in all_domains:
                has_keys &= d.codes >= 0
        rated = has_keys[candidates]
        raw = np.zeros(len(candidates))
        for c, d in zip(constraints, all_domains, strict=True):
            raw += self._raw(index, task, c, d, candidates, rated, has_keys)
        raw = np.floor(raw + 0.5)
        return self._weight * _normalise(raw, rated)

    def _raw(
        self,
        index: PodIndex,
        task: Task,
        c: _Constraint,
        d: Domains,
        candidates: NDArray[np.intp],
        rated: NDArray[np.bool_],
        has_keys: NDArray[np.bool_],
    ) -> Floats:
        pods = _pods(index, task.namespace, c)
        here = d.codes[candidates]
        if c.key == HOSTNAME:
            size = int(rated.sum())
            counts = pods[candidates]
        else:
            size = len(np.unique(here[rated]))  # by default nodes without the key are scored too: one domain
            counted = has_keys & _included(self._session, task, c)
            counts = d.around(np.where(counted, pods, 0))[candidates]
        weight = math.log(size + 2)
        return np.where(here >= 0, counts * weight + float(c.max_skew - 1), 0.0)


def _normalise(raw: Floats, rated: NDArray[np.bool_]) -> Floats:
    if not rated.any():
        return np.zeros(len(raw))
    low, high = raw[rated].min(), raw[rated].max()
    scores = np.full(len(raw), 100.0) if high == 0 else np.floor(100 * (high + low - raw) / high)
    return np.where(rated, scores, 0.0)


def _read(c: TopologySpreadConstraint, task: Task) -> _Constraint:
    labels = task.pod.metadata.labels or {}
    same = {k: labels[k] for k in c.match_label_keys or () if k in labels}
    selector = c.label_selector

    def selects(other: dict[str, str]) -> bool:
        return matches(selector, other) and all(other.get(k) == v for k, v in same.items())

    return _Constraint(
        c.topology_key,
        c.max_skew,
        c.min_domains or 1,
        selects,
        selector,
        selector is not None and not (selector.match_labels or selector.match_expressions or same),
        c.node_affinity_policy != "Ignore",
        c.node_taints_policy == "Honor",
    )


def _included(session: Session, task: Task, c: _Constraint) -> NDArray[np.bool_]:
    """The nodes that count as members of domains."""
    ok = np.ones(len(session.table), dtype=bool)
    cache = session.cluster.rule_cache()
    if c.affinity_counts:
        ok &= nodes_of_class(session, task.spec_class)
    if c.taints_count:
        key = ("spread-taints", task.spec_class.id)
        if key not in cache:
            cache[key] = ~node_taints(session.cluster).repel(task.spec_class.tolerations)
        ok &= cache[key]
    return ok


def _pods(index: PodIndex, namespace: str, constraint: _Constraint) -> NDArray[np.int64]:
    """Per node, the namespace's pods that are selected and not being deleted."""
    total: NDArray[np.int64] | None = None
    for c in index.label_classes(constraint.selector) if not constraint.empty else ():
        if c.namespace == namespace and constraint.selects(c.labels):
            total = c.live.copy() if total is None else total + c.live
    return np.zeros(index.nodes, dtype=np.int64) if total is None else total


def _default_selectors(session: Session, task: Task) -> list[LabelSelector]:
    """The selectors of the Services and the controller of a pod; empty if there is none."""
    labels = task.pod.metadata.labels or {}
    others = session.cluster.others
    required: dict[str, str] = {}
    for service in others.get("Service", {}).values():
        chosen = service.spec.selector or {}
        same = service.metadata.namespace == task.namespace
        if same and chosen and all(labels.get(k) == v for k, v in chosen.items()):
            required.update(chosen)
    selectors: list[LabelSelector] = []
    owner = task.pod.metadata.controller
    if owner is not None and (owner.api_version, owner.kind) in OWNERS:
        workload = others.get(owner.kind, {}).get(f"{task.namespace}/{owner.name}")
        chosen = workload.spec.selector if workload is not None else None
        if isinstance(chosen, dict):  # a ReplicationController's
            required.update(chosen)
        elif chosen is not None and (chosen.match_labels or chosen.match_expressions):
            with suppress(ValueError):  # Kubernetes ignores a selector that is invalid
                check(chosen)
                selectors.append(chosen)
    return [LabelSelector(match_labels=required), *selectors] if required else selectors
