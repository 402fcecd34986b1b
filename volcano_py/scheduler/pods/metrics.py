"""kube-scheduler's metrics, under its names (prefix `scheduler_`). Kubernetes: pkg/scheduler/metrics.

Times are seconds, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from volcano_py.scheduler.pods.group_metrics import GroupMetrics, doubling

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
"""Results of an attempt."""


class PodMetrics:
    """The metrics of the profiles.

    `waiting`: how many pods wait in each part of the queue. `incoming`: how many have come into a part, and why.
    `entities`, `incoming_entities`: the same for single pods and groups, by kind.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        waiting: Callable[[], Mapping[str, int]],
        incoming: Callable[[], Mapping[tuple[str, str], int]] = dict,
        entities: Callable[[], Mapping[tuple[str, str], int]] = dict,
        incoming_entities: Callable[[], Mapping[tuple[str, str, str], int]] = dict,
    ) -> None:
        registry.register(_Queue(waiting, incoming))
        registry.register(_Entities(entities, incoming_entities))
        self.groups = GroupMetrics(registry)
        own: dict[str, Any] = {"namespace": "scheduler", "registry": registry}
        self.attempts = Counter(
            "schedule_attempts_total", "Attempts to schedule a pod, by result and profile", ("result", "profile"), **own
        )
        self.duration = Histogram(
            "scheduling_attempt_duration_seconds",
            "One attempt: the search for a node and, if there is one, the binding",
            ("result", "profile"),
            buckets=doubling(0.001, 15),
            **own,
        )
        self.sli = Histogram(
            "pod_scheduling_sli_duration_seconds",
            "From a pod's first entry into the queue to its binding",
            ("attempts",),
            buckets=doubling(0.01, 20),
            **own,
        )
        self.victims = Histogram("preemption_victims", "Pods evicted for one pod", buckets=doubling(1, 7), **own)
        self.preemptions = Counter("preemption_attempts_total", "Attempts that evicted pods", **own)

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt has ended."""
        self.attempts.labels(result, profile).inc()
        self.duration.labels(result, profile).observe(seconds)

    def scheduled(self, attempts: int, seconds: float) -> None:
        """A pod is bound, `seconds` after it came."""
        self.sli.labels("16+" if attempts > 15 else str(attempts)).observe(seconds)

    def preempted(self, victims: int) -> None:
        """Pods are evicted for one pod."""
        self.preemptions.inc()
        self.victims.observe(victims)


class _Queue(Collector):
    def __init__(
        self, waiting: Callable[[], Mapping[str, int]], incoming: Callable[[], Mapping[tuple[str, str], int]]
    ) -> None:
        self._waiting = waiting
        self._incoming = incoming

    def collect(self) -> Iterable[Metric]:
        text = "Pods that wait: active, backoff, unschedulable, gated, or incomplete (their groups do not exist)"
        family = GaugeMetricFamily("scheduler_pending_pods", text, labels=["queue"])
        for queue, count in self._waiting().items():
            family.add_metric([queue], count)
        text = "Pods that came into a part of the queue, by what made them come"
        arrivals = CounterMetricFamily("scheduler_queue_incoming_pods", text, labels=["queue", "event"])
        for labels, count in self._incoming().items():
            arrivals.add_metric(list(labels), count)
        return [family, arrivals]


class _Entities(Collector):
    def __init__(
        self,
        waiting: Callable[[], Mapping[tuple[str, str], int]],
        incoming: Callable[[], Mapping[tuple[str, str, str], int]],
    ) -> None:
        self._waiting = waiting
        self._incoming = incoming

    def collect(self) -> Iterable[Metric]:
        text = "Single pods, and pod groups, that wait in a part of the queue"
        family = GaugeMetricFamily("scheduler_queued_entities", text, labels=["queue", "type"])
        for labels, count in self._waiting().items():
            family.add_metric(list(labels), count)
        text = "Single pods, and pod groups, that came into a part of the queue, by what made them come"
        arrivals = CounterMetricFamily("scheduler_queue_incoming_entities", text, labels=["queue", "event", "type"])
        for names, count in self._incoming().items():
            arrivals.add_metric(list(names), count)
        return [family, arrivals]
