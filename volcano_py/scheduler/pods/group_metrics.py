"""kube-scheduler's metrics of preemption, placements and groups, as of Kubernetes 1.37. Kubernetes:
pkg/scheduler/metrics.

What is measured here is observed by the profiles, see `Observations`; the clock is here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram

from volcano_py.scheduler.profiles.observations import SeenPlacement, SeenPreemption


def doubling(first: float, count: int) -> list[float]:
    """`count` bucket bounds from `first` on, each twice the one before."""
    return [first * 2.0**i for i in range(count)]


_SECONDS = doubling(0.001, 16)
_COUNTS = doubling(1, 11)


class GroupMetrics:
    """Observations as metrics."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, namespace="scheduler", registry=registry)

        def histogram(name: str, text: str, buckets: list[float], *labels: str) -> Histogram:
            return Histogram(name, text, labels, namespace="scheduler", registry=registry, buckets=buckets)

        self._group_attempts = counter(
            "workload_preemption_attempts_total", "Searches for victims of a pod group, by result", "result"
        )
        self._group_victims = histogram("workload_preemption_victims", "Pods evicted for one pod group", _COUNTS)
        self._units = histogram(
            "preemption_workload_disruptions",
            "Single pods, and groups evicted whole, per preemption",
            _COUNTS,
            "preemptor",
        )
        self._evaluation = histogram(
            "preemption_evaluation_duration_seconds", "One search for victims", _SECONDS, "preemptor", "result"
        )
        self._execution = histogram(
            "preemption_execution_duration_seconds",
            "From a decision to evict until the last result of its evictions",
            _SECONDS,
            "preemptor",
            "result",
        )
        self._violations = counter(
            "preemption_pdb_violations_total", "Evicted pods that break a PodDisruptionBudget", "preemptor"
        )
        self._generated = counter("generated_placements_total", "Placements of pod groups", "profile")
        self._evaluations = counter(
            "placement_evaluations_total", "Placements of pod groups that were tried, by result", "result", "profile"
        )
        self._trials = histogram(
            "placement_evaluation_duration_seconds", "One placement that was tried", _SECONDS, "result", "profile"
        )
        self._evicting: dict[str, _Execution] = {}

    @contextmanager
    def preemption(self, *, by_group: bool) -> Iterator[SeenPreemption]:
        preemptor, begun, seen = _name(by_group), self._clock(), SeenPreemption()
        try:
            yield seen
        finally:
            self._evaluation.labels(preemptor, seen.result).observe(self._clock() - begun)
            if by_group:
                self._group_attempts.labels(seen.result).inc()
        if seen.victims:
            self._units.labels(preemptor).observe(seen.units)
            self._violations.labels(preemptor).inc(seen.violations)
            if by_group:
                self._group_victims.observe(seen.victims)

    def placements(self, profile: str, count: int) -> None:
        self._generated.labels(profile).inc(count)

    @contextmanager
    def placement(self, profile: str) -> Iterator[SeenPlacement]:
        begun, seen = self._clock(), SeenPlacement()
        try:
            yield seen
        finally:
            result = "feasible" if seen.feasible else "infeasible"
            self._evaluations.labels(result, profile).inc()
            self._trials.labels(result, profile).observe(self._clock() - begun)

    def evicting(self, uids: set[str], *, by_group: bool) -> None:
        """Pods are being evicted for one pod, or for one group."""
        execution = _Execution(_name(by_group), self._clock(), set(uids))
        self._evicting.update(dict.fromkeys(uids, execution))

    def evicted(self, uid: str, *, ok: bool) -> None:
        """The result of an eviction."""
        execution = self._evicting.pop(uid, None)
        if execution is None:
            return
        execution.left.discard(uid)
        execution.ok = execution.ok and ok
        if not execution.left:
            result = "success" if execution.ok else "error"
            self._execution.labels(execution.preemptor, result).observe(self._clock() - execution.begun)


class _Execution:
    """The evictions of one preemption."""

    def __init__(self, preemptor: str, begun: float, left: set[str]) -> None:
        self.preemptor = preemptor
        self.begun = begun
        self.left = left
        self.ok = True


def _name(by_group: bool) -> str:
    return "podgroup" if by_group else "pod"
