"""Affinity and anti-affinity between pods, for sessions. kube-scheduler: InterPodAffinity (hardPodAffinityWeight 0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Bools, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.noderules.pod_index import PodIndex, pod_index, terms_of_class
from volcano_py.scheduler.rules.arrays import Ints
from volcano_py.scheduler.rules.domains import domains
from volcano_py.scheduler.rules.pod_affinity import NOT_NEAR, TOO_NEAR, UNWANTED, AffinityTerm, is_any, is_near, scores


class InterPodAffinityRule:
    """Rejects nodes by required terms: those of the pod, and the anti-affinity of existing pods."""

    name = "InterPodAffinity"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [
        Reason("node(s) didn't match pod affinity rules", FitCode.UNRESOLVABLE),
        Reason("node(s) didn't match pod anti-affinity rules", FitCode.UNSCHEDULABLE),
        Reason("node(s) didn't satisfy existing pods anti-affinity rules", FitCode.UNSCHEDULABLE),
    ]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._live = session.deviations.live_affinity_lists
        self._anyone = any(terms_of_class(c).anti_affinity for c in session.cluster.classes.all())
        """Whether a pod of the cluster has required anti-affinity."""

    def applies(self, task: Task) -> bool:
        if self._anyone:
            return True
        terms = terms_of_class(task.spec_class)
        return bool(terms.affinity or terms.anti_affinity)

    def limits_pods(self, task: Task) -> bool:
        """Whether the pod has required terms, or another one has a term against it."""
        terms = terms_of_class(task.spec_class)
        return bool(terms.affinity or terms.anti_affinity) or any(pod_index(self._session).against(task))

    def filter(self, task: Task) -> Codes:
        index = pod_index(self._session)
        codes = np.zeros(len(self._session.table), dtype=np.int8)
        codes[self._rejected_by_pods(index, task)] = UNWANTED
        own = index.own_terms(task.spec_class)
        if own.anti_affinity:
            codes[is_any(self._around(t, index.selected(t)) for t in own.anti_affinity)] = TOO_NEAR
        if own.affinity:
            codes[~self._accepted_by_affinity(index, task, own.affinity)] = NOT_NEAR
        return codes

    def _around(self, term: AffinityTerm, pods: Ints) -> Ints:
        return domains(self._session.cluster, term.key).around(pods)

    def _accepted_by_affinity(self, index: PodIndex, task: Task, terms: Sequence[AffinityTerm]) -> Bools:
        """Nodes whose domains hold pods that satisfy all required affinity terms together."""
        together = np.zeros(len(self._session.table), dtype=np.int64)
        for c in index.label_classes(terms[0].selector):
            if all(t.selects(c.namespace, c.labels) for t in terms):
                together += c.pods
        required = [(domains(self._session.cluster, t.key).has, self._around(t, together)) for t in terms]
        labels = task.pod.metadata.labels or {}
        first = not any(around.any() for _, around in required) and all(
            t.selects(task.namespace, labels) for t in terms
        )
        found: Bools = is_near(required, first)
        return found

    def _rejected_by_pods(self, index: PodIndex, task: Task) -> Bools:
        """Nodes in whose domain there is a pod with anti-affinity to the task."""
        bad = np.zeros(len(self._session.table), dtype=bool)
        for holders, term in index.against(task):
            pods = holders.pods if self._live else np.where(index.with_anti_affinity, holders.pods, 0)
            bad |= self._around(term, pods) > 0
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
        self._anyone = any(terms_of_class(c).preferred for c in session.cluster.classes.all())

    def applies(self, task: Task) -> bool:
        return self._anyone

    def constant(self, task: Task) -> float | None:
        return None if self._anyone else 0.0

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        index = pod_index(self._session)
        cluster = self._session.cluster
        sums = np.zeros(len(self._session.table), dtype=np.int64)
        own = index.own_terms(task.spec_class).preferred
        for term in own:
            sums += term.weight * domains(cluster, term.key).around(index.selected(term))
        everywhere = self._live or bool(own)
        for holders, term in index.preferring(task):
            pods = holders.pods if everywhere else np.where(index.with_affinity, holders.pods, 0)
            sums += term.weight * domains(cluster, term.key).around(pods)
        return (self._weight * scores(sums[candidates])).astype(np.float64)
