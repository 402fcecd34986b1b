"""The scheduler's metrics after real cycles: what plugins, preempt and the dispatcher report."""

from __future__ import annotations

from typing import Any

from tests.scheduler.trial import Trial
from volcano_py.api.core import Pod
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.pre_bind import SelectNode
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.scheduler.runtime.metrics import Metrics

PLUGINS = [["priority", "conformance"], ["gang", "predicates", "nodeorder"]]
SCENARIO: dict[str, Any] = {
    "nodes": {"n1": {"cpu": 2}, "n2": {"cpu": 2}},
    "priorities": {"high": 100, "low": 1},
    "jobs": {
        "old": {"min": 1, "pods": 2, "phase": "Running", "priority": "low", "each": {"cpu": 2, "runsOn": "n1"}},
        "new": {"min": 1, "phase": "Inqueue", "priority": "high", "each": {"cpu": 2}},
        "large": {"min": 4, "pods": 4, "phase": "Inqueue", "priority": "low", "each": {"cpu": 2}},
    },
}


def values(metrics: Metrics) -> dict[str, float]:
    """The value of each series."""
    lines = (line for line in metrics.expose().decode().splitlines() if line.startswith("volcano_"))
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


def test_gangs_that_are_not_ready() -> None:
    trial, metrics = Trial(SCENARIO, PLUGINS, "allocate, preempt"), Metrics()
    trial.cycle()
    metrics.cycle(trial.report, 0.01)
    assert trial.bound == {"new-0"} and trial.evicted == set(), "n2 is free"
    first = values(metrics)
    assert first['volcano_unschedule_task_count{job_id="large"}'] == 4
    assert first['volcano_unschedule_task_count{job_id="new"}'] == 0
    assert first["volcano_unschedule_job_count"] == 1
    assert first['volcano_job_retry_counts{job_id="large"}'] == 1
    assert 'volcano_job_retry_counts{job_id="new"}' not in first

    trial.cycle(1)
    metrics.cycle(trial.report, 0.01)
    assert values(metrics)['volcano_job_retry_counts{job_id="large"}'] == 2
    metrics.forget_job("default", "large")
    assert not [series for series in values(metrics) if '"large"' in series]


def test_preempt_counts_nodes_and_victims() -> None:
    for topology_aware in (False, True):
        jobs = {name: job for name, job in SCENARIO["jobs"].items() if name != "large"}
        jobs["old"] = {"min": 1, "pods": 2, "phase": "Running", "priority": "low", "each": {"cpu": 1, "runsOn": "n1"}}
        scenario = SCENARIO | {"nodes": {"n1": {"cpu": 2}}, "jobs": jobs}
        arguments = {"enableTopologyAwarePreemption": topology_aware}
        settings = [{"name": "preempt", "arguments": arguments}]
        trial, metrics = Trial(scenario, PLUGINS, "allocate, preempt", configurations=settings), Metrics()
        metrics.cycle(cycled(trial), 0.01)
        found = values(metrics)
        assert found["volcano_total_preemption_attempts"] >= 1
        assert found["volcano_pod_preemption_victims"] >= 1
        no_preemption = Trial(SCENARIO, PLUGINS, "allocate")
        metrics.cycle(cycled(no_preemption), 0.01)
        kept = ("volcano_total_preemption_attempts", "volcano_pod_preemption_victims")
        assert {name: values(metrics)[name] for name in kept} == {name: found[name] for name in kept}


def cycled(trial: Trial) -> CycleReport:
    trial.cycle()
    return trial.report


def test_stages_of_a_pod() -> None:
    metrics, model = Metrics(), Cluster()
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u", creation_timestamp="2026-01-01T00:00:00Z"))
    created = 1_767_225_600.0
    metrics.watched(pod, created + 0.25)
    model.upsert("Pod", pod)
    bind = Bind("ns", "p", "u", "n1", "ns/g", steps=(SelectNode("ns", "data", "claim-uid", "n1"),))
    metrics.result(bind, Result(1, "done", waited=0.5, took=0.125), model, created + 2)
    found = values(metrics)
    task, stage = "volcano_task_scheduling_latency_milliseconds", "volcano_scheduling_stage_duration_milliseconds"
    sums = {name: found[f'{task}_sum{{stage="{name}"}}'] for name in ("Watched", "PreBound", "Bound")}
    assert sums == {"Watched": 250.0, "PreBound": 1875.0, "Bound": 2000.0}
    assert {name: found[f'{stage}_sum{{stage="{name}"}}'] for name in ("PreBind", "Bind")} == {
        "PreBind": 500.0,
        "Bind": 125.0,
    }
