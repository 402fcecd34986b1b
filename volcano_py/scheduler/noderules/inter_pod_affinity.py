"""Affinity and anti-affinity between pods. kube-scheduler: InterPodAffinity (hardPodAffinityWeight 0)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import DOMAIN, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.noderules.normalise import min_max_normalise
from volcano_py.scheduler.noderules.pod_index import PodIndex, pod_index, terms_of
from volcano_py.scheduler.rules.domains import domains


class InterPodAffinity:
    """Rejects nodes by required terms: those of the pod, and the anti-affinity of existing pods."""

    name = "InterPodAffinity"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [
        Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE),
        Reason("node(s) didn't match pod anti-affinity rules", Code.UNSCHEDULABLE),
        Reason("node(s) didn't satisfy existing pods anti-affinity rules", Code.UNSCHEDULABLE),
    ]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._live = session.deviations.live_affinity_lists
        self._anyone = any(terms_of(c).anti_affinity for c in session.cluster.classes.all())
        """Whether a pod of the cluster has required anti-affinity."""

    def applies(self, task: Task) -> bool:
        if self._anyone:
            return True
        terms = terms_of(task.spec_class)
        return bool(terms.affinity or terms.anti_affinity)

    def filter(self, task: Task) -> Codes:
        index = pod_index(self._session)
        codes = np.zeros(len(self._session.table), dtype=np.int8)
        codes[self._rejected_by_pods(index, task)] = 3
        codes[self._rejected_by_anti_affinity(index, task)] = 2
        codes[~self._accepted_by_affinity(index, task)] = 1
        return codes

    def _accepted_by_affinity(self, index: PodIndex, task: Task) -> NDArray[np.bool_]:
        """Nodes whose domains hold pods that satisfy all required affinity terms together."""
        terms = index.terms(task.spec_class).affinity
        count = len(self._session.table)
        if not terms:
            return np.ones(count, dtype=bool)
        together = np.zeros(count, dtype=np.int64)
        for c in index.label_classes(terms[0].label_selector):
            if all(index.selects(t, task.namespace, c.namespace, c.labels) for t in terms):
                together += c.pods
        has_keys = np.ones(count, dtype=bool)
        near = np.ones(count, dtype=bool)
        anywhere = False
        for term in terms:
            d = domains(self._session.cluster, term.topology_key)
            sums = d.sums(together)
            anywhere = anywhere or bool((sums > 0).any())
            has_keys &= d.codes >= 0
            near &= d.at_nodes(sums) > 0
        if not anywhere:
            labels = task.pod.metadata.labels or {}
            if all(index.selects(t, task.namespace, task.namespace, labels) for t in terms):
                return has_keys  # the first pod of a group with affinity to itself
        return has_keys & near

    def _rejected_by_anti_affinity(self, index: PodIndex, task: Task) -> NDArray[np.bool_]:
        """Nodes in whose domain there is a pod that matches the task's anti-affinity."""
        bad = np.zeros(len(self._session.table), dtype=bool)
        for term in index.terms(task.spec_class).anti_affinity:
            d = domains(self._session.cluster, term.topology_key)
            bad |= d.around(index.selected(term, task.namespace)) > 0
        return bad

    def _rejected_by_pods(self, index: PodIndex, task: Task) -> NDArray[np.bool_]:
        """Nodes in whose domain there is a pod with anti-affinity to the task."""
        bad = np.zeros(len(self._session.table), dtype=bool)
        for holders, term in index.against(task):
            pods = holders.pods if self._live else np.where(index.with_anti_affinity, holders.pods, 0)
            bad |= domains(self._session.cluster, term.topology_key).around(pods) > 0
        return bad


class InterPodPreference:
    """Scores nodes by preferred terms in both directions, scaled from the lowest candidate to the highest."""

    name = "InterPodPreference"
    in_runs = True
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._session = session
        self._weight = weight
        self._live = session.deviations.live_affinity_lists
        self._anyone = any(terms_of(c).preferred for c in session.cluster.classes.all())

    def applies(self, task: Task) -> bool:
        return self._anyone

    def constant(self, task: Task) -> float | None:
        return None if self._anyone else 0.0

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        index = pod_index(self._session)
        cluster = self._session.cluster
        raw = np.zeros(len(self._session.table), dtype=np.int64)
        own = index.terms(task.spec_class).preferred
        for weight, term in own:
            raw += weight * domains(cluster, term.topology_key).around(index.selected(term, task.namespace))
        everywhere = self._live or bool(own)
        for holders, weight, term in index.preferring(task):
            pods = holders.pods if everywhere else np.where(index.with_affinity, holders.pods, 0)
            raw += weight * domains(cluster, term.topology_key).around(pods)
        return self._weight * min_max_normalise(raw[candidates].astype(np.float64))
