"""The scheduler's metrics, under Volcano's names (prefix `volcano_`), and additions (`volcano_py_`).

Times are milliseconds, as in Volcano; negative ones count as 0. Filters and scores are evaluated together, in one pass
over all nodes for a class of pods: the stages Predicate and Scoring do not exist, their time is part of the action.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from volcano_py.api.core import Pod
from volcano_py.api.meta import parse_time
from volcano_py.kube.request_counts import RequestCounts
from volcano_py.kube.request_metrics import RequestMetrics
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.plan import Bind, Evict, Operation
from volcano_py.scheduler.plugins.deviceshare.ledger import DeviceBooks
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.scheduler.runtime.device_metrics import DeviceMetrics
from volcano_py.scheduler.runtime.series import CycleGauge, CycleHistogram, HistogramSeries

# Go's client has no series of creation times, and no dashboard expects them.
disable_created_metrics()  # type: ignore[no-untyped-call]


def exponential(first: float, last: float, count: int) -> list[float]:
    """`count` bucket bounds from `first` to `last`, in geometric progression."""
    factor = (last / first) ** (1 / (count - 1))
    return [first * factor**i for i in range(count - 1)] + [last]


class _Timer:
    """Times one part of each cycle; it is not entered again within itself."""

    __slots__ = ("_begun", "_series")

    def __init__(self, series: HistogramSeries | None) -> None:
        self._series = series
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        if self._series is not None:
            self._series.observe((time.perf_counter() - self._begun) * 1000)


class Metrics:
    """One set of metrics in its own registry. `books`: the current books of devices. `requests`: those of the scheduler
    and its dispatcher."""

    def __init__(self, books: Callable[[], DeviceBooks] = DeviceBooks, requests: RequestCounts | None = None) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(RequestMetrics(RequestCounts() if requests is None else requests))
        self.registry.register(DeviceMetrics(books))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.e2e = self._histogram("e2e_scheduling_latency_milliseconds", "Whole cycle", (1, 5000, 20))
        self.open = self._histogram("open_session_duration_milliseconds", "Opening a session", (1, 5000, 20))
        self.job_latency = self._histogram(
            "e2e_job_scheduling_latency_milliseconds", "Job creation to a placement", (100, 120_000, 30)
        )
        self.plugin = self._histogram(
            "plugin_scheduling_latency_milliseconds", "Plugin hooks", (0.1, 100, 15), "plugin", "OnSession"
        )
        self.action = self._histogram("action_scheduling_latency_milliseconds", "Actions", (1, 2000, 20), "action")
        self.task = self._histogram(
            "task_scheduling_latency_milliseconds", "Pod creation to a stage", (50, 60_000, 30), "stage"
        )
        self.stage = self._histogram(
            "scheduling_stage_duration_milliseconds", "One task in one stage", (0.1, 500, 20), "stage"
        )
        labels = ("job_name", "queue", "job_namespace")
        self.job_duration = self._cycle_gauge(
            "e2e_job_scheduling_duration", "Job creation to its last placement, ms", *labels
        )
        self.job_start = self._cycle_gauge("e2e_job_scheduling_start_time", "Job creation, unix seconds", *labels)
        self.job_last = self._cycle_gauge("e2e_job_scheduling_last_time", "Last placement, unix seconds", *labels)
        # Volcano counts this one without the suffix that the client library would add to a Counter.
        self.job_retries = self._cycle_gauge("job_retry_counts", "Cycles in which a job was not ready", "job_id")
        self.preemptions = self._gauge("total_preemption_attempts", "Nodes on which preempt tried to free capacity")
        self.victims = self._gauge("pod_preemption_victims", "Victims that the plugins permitted the last time")
        self.unready_jobs = self._gauge("unschedule_job_count", "Jobs whose gang is not ready")
        for name in ("namespace_share", "namespace_weight", "namespace_weighted_share"):
            self._gauge(name, "Without series, as in Volcano: no plugin sets it", "namespace_name")
        self.attempts = self._counter("schedule_attempts_total", "Binds by result", "result")
        self.evictions = self._counter("eviction_transactions_total", "Committed statements with an eviction", "action")
        own: dict[str, Any] = {"namespace": "volcano_py", "registry": self.registry}
        self.cycles = Counter("cycles_total", "Sessions opened", **own)
        self.failed_cycles = Gauge("failed_cycles", "Cycles that failed in succession until now", **own)
        self.faults = Counter("plugin_faults_total", "Plugins that raised", ("plugin", "point"), **own)
        self.quarantined = Gauge("quarantined_objects", "Objects that cannot be used", ("kind",), **own)
        self.jobs_without_queue = Gauge("jobs_without_queue", "Jobs that wait for a queue that does not exist", **own)
        self.unanswered = Gauge("unanswered_operations", "Operations at the dispatcher", **own)
        self.unknown = Gauge("unknown_operations", "Pods being read because a result is missing", **own)
        self.leading = Gauge("leading", "1 while plans may be written", **own)
        self.stuck = Counter("stuck_cycles_total", "Cycles that the watchdog ended, by plugin", ("plugin",), **own)
        self.plugins = Gauge(
            "plugin_condition", "1 for a plugin that is off, closed or failing", ("plugin", "state"), **own
        )
        self.drift = Counter("cache_drift_total", "Differences from the API server, corrected", ("kind", "form"), **own)
        self.held_nodes = Gauge("held_nodes", "Nodes that take no new pods while their objects are verified", **own)
        self.audit_rounds = Gauge("cache_audit_rounds", "Complete comparisons with the API server", **own)
        self.audit_seconds = Gauge("cache_audit_round_seconds", "Duration of the last one", **own)
        self.audit_requests = Gauge("cache_audit_requests", "Requests of the cache audit so far", **own)
        self.audit_bytes = Gauge("cache_audit_bytes", "Size of their responses so far", **own)
        self.audit_unread = Gauge("cache_audit_unread_kinds", "Kinds that the last comparison could not list", **own)
        self.takeover_lists = Gauge("takeover_lists_missing", "Kinds that a new leader waits for, to decide", **own)
        self.configuration_invalid = Gauge(
            "configuration_invalid", "1 while the document is invalid and another configuration, or none, is in force",
            **own,
        )  # fmt: skip
        self.restarts = Gauge("dispatcher_restarts", "Dispatchers that had to be replaced", **own)
        self.connected = Gauge("watches_connected", "1 while the main kinds are being watched", **own)
        self.results = Counter("operation_results_total", "Operations by kind and outcome", ("op", "outcome"), **own)
        self.wait = CycleHistogram(
            "volcano_py_operation_wait_milliseconds",
            "Time in the dispatcher's queue",
            exponential(0.1, 60_000, 25),
            ("op",),
            self.registry,
        )
        self._timers: dict[tuple[str, str], _Timer] = {}
        self._families: dict[str, CycleGauge] = {
            "unschedule_task_count": self._cycle_gauge("unschedule_task_count", "Pods that a gang lacks", "job_id")
        }
        self._job_families: dict[tuple[str, str], set[str]] = {}
        """By namespace and name of a job: the families of its series that plugins report."""
        self._reported: dict[str, set[tuple[str, ...]]] = {}
        """The series that plugins have reported in the last cycle: by name, the values of the labels."""
        self._jobs: dict[tuple[str, str], tuple[str, str, str]] = {}
        self._results: dict[tuple[str, str], Counter] = {}

    def expose(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    # ---- the cycle --------------------------------------------------------------------------------------

    def timer(self, kind: str, name: str) -> AbstractContextManager[None]:
        """Times a part of the cycle, for `run_once`."""
        found = self._timers.get((kind, name))
        if found is None:
            found = self._timers[kind, name] = _Timer(self._series_of(kind, name))
        return found

    def _series_of(self, kind: str, name: str) -> HistogramSeries | None:
        match kind:
            case "action":
                return self.action.labels(name)
            case "plugin-open":
                return self.plugin.labels(name, "OnSessionOpen")
            case "plugin-close":
                return self.plugin.labels(name, "OnSessionClose")
        return self.open.labels() if (kind, name) == ("session", "open") else None

    def watched(self, pod: Pod, now: float) -> None:
        """A pod without a node was added."""
        self._since(pod.metadata.creation_timestamp, "Watched", now)

    def emitted(self, operations: Sequence[Operation], model: Any, now: float) -> None:
        """A statement was committed."""
        evicting = None
        for op in operations:
            if not isinstance(op, Bind):
                if evicting is None and isinstance(op, Evict):
                    evicting = op.reason
                    self.evictions.labels(evicting).inc()
                continue
            self._since_creation(op, model, "Assumed", now)
            job = model.jobs.get(op.group)
            if job is not None and job.created:
                spent = max(0.0, (now - job.created) * 1000)
                labels = self._jobs[job.namespace, job.name] = (job.name, job.queue, job.namespace)
                self.job_latency.observe(spent)
                self.job_duration.values[labels] = spent
                self.job_start.values[labels] = job.created
                self.job_last.values[labels] = now

    def cycle(self, report: CycleReport, seconds: float) -> None:
        """A cycle has ended."""
        self.cycles.inc()
        self.e2e.observe(max(0.0, seconds * 1000))
        for fault in report.faults:
            self.faults.labels(fault.plugin, fault.point).inc()
        self.jobs_without_queue.set(len(report.session.jobs_without_queue))
        work, unready = report.session.work, report.session.unready_jobs
        self.preemptions.inc(work.preemption_attempts)
        if work.last_victims is not None:
            self.victims.set(work.last_victims)
        if unready is not None:
            self.unready_jobs.set(len(unready))
            retries = self.job_retries.values
            for name in unready:
                retries[(name,)] = retries.get((name,), 0.0) + 1.0
        self._take_gauges(report.session.gauges)
        self._take_job_gauges(report.session.job_gauges)

    def forget_job(self, namespace: str, name: str) -> None:
        """A job is gone: so are its series."""
        labels = self._jobs.pop((namespace, name), None)
        if labels is not None:
            for family in (self.job_duration, self.job_start, self.job_last):
                family.values.pop(labels, None)
        self.job_retries.values.pop((name,), None)
        for of_plugin in self._job_families.pop((namespace, name), ()):
            self._families[of_plugin].values.pop(_labels_of_job(of_plugin, namespace, name), None)

    # ---- the dispatcher ---------------------------------------------------------------------------------

    def result(self, op: Operation, result: Result, model: Any, now: float) -> None:
        """An operation has ended."""
        kind = type(op).__name__
        results = self._results.get((kind, result.outcome))
        if results is None:
            results = self._results[kind, result.outcome] = self.results.labels(kind, result.outcome)
        results.inc()
        if result.took:
            self.wait.labels(kind).observe(result.waited * 1000)
        if isinstance(op, Bind):
            if result.outcome == "done":
                self.attempts.labels("scheduled").inc()
                self.stage.labels("Bind").observe(result.took * 1000)
                if op.steps:
                    self.stage.labels("PreBind").observe(result.waited * 1000)
                self._since_creation(op, model, "PreBound", now - result.took)
                self._since_creation(op, model, "Bound", now)
            elif result.outcome == "failed":
                self.attempts.labels("error").inc()

    # ---- inside -----------------------------------------------------------------------------------------

    def _since_creation(self, op: Bind, model: Any, stage: str, now: float) -> None:
        task = model.tasks.get(f"{op.namespace}/{op.name}")
        if task is not None:
            self._since(task.pod.metadata.creation_timestamp, stage, now)

    def _since(self, created: str | None, stage: str, now: float) -> None:
        if created:
            self.task.labels(stage).observe(max(0.0, (now - parse_time(created)) * 1000))

    def _take_gauges(self, gauges: Sequence[tuple[str, dict[str, str], float]]) -> None:
        reported: dict[str, set[tuple[str, ...]]] = {}
        for name, labels, value in gauges:
            family = self._families.get(name)
            if family is None:
                family = self._families[name] = self._cycle_gauge(name, f"Volcano's {name}", *labels)
            if tuple(labels) != family.label_names:
                labels = {label: labels[label] for label in family.label_names}
            values = tuple(map(str, labels.values()))
            family.values[values] = float(value)
            series = reported.get(name)
            if series is None:
                series = reported[name] = set()
            series.add(values)
        if reported != self._reported:
            self._drop_unreported(gauges, reported)
        self._reported = reported

    def _drop_unreported(
        self, gauges: Sequence[tuple[str, dict[str, str], float]], reported: dict[str, set[tuple[str, ...]]]
    ) -> None:
        """Remove the series that plugins reported in the last cycle, and not in this one."""
        queues = {labels.get("queue_name") for _, labels, _ in gauges}
        for name, before in self._reported.items():
            now = reported.setdefault(name, set())
            for values in before - now:
                if name.endswith("_scalar_resources") and values and values[0] in queues:
                    # A resource that a queue has had stays, at 0.
                    self._families[name].values[values] = 0.0
                    now.add(values)
                elif values:
                    self._families[name].values.pop(values, None)

    def _take_job_gauges(self, gauges: Sequence[tuple[str, str, str, float]]) -> None:
        for name, namespace, job_name, value in gauges:
            family = self._families.get(name)
            if family is None:
                family = self._families[name] = self._cycle_gauge(name, f"Volcano's {name}", "job_ns", "job_id")
            job = namespace, job_name
            family.values[_labels_of_job(name, *job)] = float(value)
            self._job_families.setdefault(job, set()).add(name)

    def _histogram(self, name: str, text: str, buckets: tuple[float, float, int], *labels: str) -> CycleHistogram:
        return CycleHistogram(f"volcano_{name}", text, exponential(*buckets), labels, self.registry)

    def _cycle_gauge(self, name: str, text: str, *labels: str) -> CycleGauge:
        return CycleGauge(f"volcano_{name}", text, labels, self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, namespace="volcano", registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, namespace="volcano", registry=self.registry)


def _labels_of_job(family: str, namespace: str, name: str) -> tuple[str, ...]:
    """The labels of a job's series. Volcano's count of unready pods has only the job's name."""
    return (name,) if family == "unschedule_task_count" else (namespace, name)
