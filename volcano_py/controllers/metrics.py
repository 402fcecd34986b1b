"""Metrics of the controller-manager, with Volcano's names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from volcano_py.kube.request_counts import RequestCounts
from volcano_py.kube.request_metrics import RequestMetrics

REGISTRY = CollectorRegistry()
REQUESTS = RequestCounts()
"""The requests of the process."""
REGISTRY.register(RequestMetrics(REQUESTS))

_LATENCY_BUCKETS = [50 * (60000 / 50) ** (step / 29) for step in range(30)]

# Counts under Volcano's names; a Counter of the client library would append `_total`.
JOB_COMPLETED = Gauge(
    "volcano_job_completed_phase_count",
    "Jobs that completed",
    ["job_name", "queue_name"],
    registry=REGISTRY,
)
JOB_FAILED = Gauge("volcano_job_failed_phase_count", "Jobs that failed", ["job_name", "queue_name"], registry=REGISTRY)
JOBFLOW_PHASES = {
    "Succeed": Gauge(
        "volcano_jobflow_succeed_phase_count", "JobFlows that succeeded", ["jobflow_namespace"], registry=REGISTRY
    ),
    "Failed": Gauge(
        "volcano_jobflow_failed_phase_count", "JobFlows that failed", ["jobflow_namespace"], registry=REGISTRY
    ),
}
POD_CREATION_LATENCY = Histogram(
    "volcano_controller_job_to_pod_creation_latency_milliseconds",
    "From the creation of a job to that of its pods",
    buckets=_LATENCY_BUCKETS,
    registry=REGISTRY,
)
RECONCILE_FAILURES = Counter(
    "volcano_py_reconcile_failures_total", "Reconciliations that failed", ["controller"], registry=REGISTRY
)
QUEUE_POD_GROUPS = {
    phase: Gauge(
        f"volcano_queue_pod_group_{phase.lower()}_count",
        f"PodGroups of a queue in phase {phase}",
        ["queue_name"],
        registry=REGISTRY,
    )
    for phase in ("Inqueue", "Pending", "Running", "Unknown", "Completed")
}


def count_jobflow(namespace: str, phase: str) -> None:
    """A JobFlow has entered a phase."""
    if phase in JOBFLOW_PHASES:
        JOBFLOW_PHASES[phase].labels(namespace).inc()


def forget_job(key: str, queue: str) -> None:
    """The Job was deleted: delete its series."""
    for metric in (JOB_COMPLETED, JOB_FAILED):
        try:
            metric.remove(key, queue)
        except KeyError:
            continue


def forget_queue(name: str) -> None:
    for gauge in QUEUE_POD_GROUPS.values():
        try:
            gauge.remove(name)
        except KeyError:
            continue
