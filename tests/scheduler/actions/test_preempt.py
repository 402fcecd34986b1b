"""preempt: which jobs it serves and which pods it evicts, within a queue and within a job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial

PRIORITIES = {"high": 100, "mid": 10, "low": 1}
PLUGINS: list[list[Any]] = [["priority", "conformance"], ["gang", "predicates", "nodeorder"]]


def old(pods: int = 1, minimum: int = 0, **more: Any) -> Manifest:
    each = {"cpu": 1, "runsOn": "n1", **more.pop("each", {})}
    return {"min": minimum, "pods": pods, "phase": "Running", "priority": "low", "each": each, **more}


def new(pods: int = 1, **more: Any) -> Manifest:
    return {"min": pods, "pods": pods, "phase": "Inqueue", "priority": "high", "each": {"cpu": 1}, **more}


def trial(jobs: Manifest, cpu: int = 2, actions: str = "allocate, preempt", **more: Any) -> Trial:
    settings = {k: more.pop(k) for k in ("configurations", "deviations") if k in more}
    scenario = {"nodes": {"n1": {"cpu": cpu}}, "priorities": PRIORITIES, "jobs": jobs, **more}
    made = Trial(scenario, PLUGINS, actions, **settings)
    made.cycle()
    return made


@pytest.mark.parametrize(
    "configurations", [[], [{"name": "preempt", "arguments": {"enableTopologyAwarePreemption": True}}]]
)
@pytest.mark.parametrize(
    ("job", "evicted"),
    [
        (new(1), 1),
        (new(2), 2),
        (new(3), 0),  # not all of it would fit
        (new(3, min=1), 2),  # as many as it can use
        (new(1, each={"cpu": 2}), 2),
        (new(1, each={"cpu": 1, "spec": {"preemptionPolicy": "Never"}}), 0),
        (new(1, each={"cpu": 1, "spec": {"schedulingGates": [{"name": "mine"}]}}), 0),
        (new(1, each={"cpu": 1, "spec": {"nodeSelector": {"no": "where"}}}), 0),
        (new(1, topology={"mode": "hard", "tier": 1}), 0),
        (new(1, queue="other"), 0),
    ],
)
def test_number_of_victims(job: Manifest, evicted: int, configurations: list[Manifest]) -> None:
    found = trial({"old": old(2), "new": job}, queues={"other": {}}, configurations=configurations)
    assert len(found.evicted) == evicted


@pytest.mark.parametrize(
    ("limits", "evicted"),
    [
        ({}, 1),
        ({"minCandidateNodesAbsolute": 0}, 0),  # ten percent of one node is none
        ({"minCandidateNodesAbsolute": 0, "minCandidateNodesPercentage": 100}, 1),
        ({"maxCandidateNodesAbsolute": 0}, 0),
        ({"maxCandidateNodesAbsolute": 0, "minCandidateNodesPercentage": 100}, 0),
    ],
)
def test_with_no_candidate_nodes_volcano_frees_no_node(limits: Manifest, evicted: int) -> None:
    arguments = {"enableTopologyAwarePreemption": True, **limits}
    settings = {"configurations": [{"name": "preempt", "arguments": arguments}]}
    assert len(trial({"old": old(2), "new": new(1)}, deviations="parity", **settings).evicted) == evicted
    assert len(trial({"old": old(2), "new": new(1)}, **settings).evicted) == 1


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_job_that_is_not_admitted_evicts_no_pod(phase: str) -> None:
    found = trial({"old": old(2), "new": new(1, phase=phase)}, actions="preempt")
    assert len(found.evicted) == int(phase == "Inqueue")


def test_the_least_important_job_loses() -> None:
    jobs = {"a": old(1), "b": old(1, priority="mid"), "new": new(1)}
    found = trial(jobs)
    assert found.evicted == {"a-0"} and found.report.pipelined() == {"default/new-0": "n1"}


def test_two_jobs_are_served_one_after_the_other() -> None:
    found = trial({"old": old(2), "x": new(1), "y": new(1)})
    assert found.evicted == {"old-0", "old-1"} and set(found.report.pipelined()) == {"default/x-0", "default/y-0"}


def test_a_job_that_eviction_cannot_help_does_not_block_the_next() -> None:
    found = trial({"old": old(2), "big": new(1, each={"cpu": 9}), "new": new(1, priority="mid")})
    assert found.evicted == {"old-1"} and set(found.report.pipelined()) == {"default/new-0"}


def test_within_a_job_the_more_important_task_preempts_another() -> None:
    roles = {
        "a": {"cpu": 1, "runsOn": "n1", "annotations": {"volcano.sh/task-priority": "1"}},
        "b": {"pods": 2, "cpu": 1, "annotations": {"volcano.sh/task-priority": "5"}},
    }
    job = {"min": 1, "phase": "Running", "priority": "low", "tasks": roles}
    found = trial({"j": job}, 1)
    assert len(found.evicted) <= 1
    roles["a"], roles["b"] = {**roles["a"], "spec": {"priority": 1}}, {**roles["b"], "spec": {"priority": 5}}
    job = {"min": 0, "phase": "Running", "tasks": roles}
    found = trial({"j": job}, 1)
    assert found.evicted == {"j-a-0"}


def test_best_effort_pods_preempt_only_best_effort_pods() -> None:
    for each, evicted in (({}, set()), ({"cpu": 0}, {"old-0"})):
        jobs = {"old": old(1, each=each), "new": new(1, each={})}
        scenario = {"nodes": {"n1": {"cpu": 2, "pods": 1}}, "priorities": PRIORITIES, "jobs": jobs}
        found = Trial(scenario, PLUGINS, "allocate, backfill, preempt")
        found.cycle()
        assert found.evicted == evicted


@pytest.mark.parametrize(
    ("nominated", "deviations", "evicted"),
    [
        ("", "parity", 1),
        ("gone", "parity", 0),
        ("gone", None, 1),
        ("n1", "parity", 0),
        ("n1", None, 1),
        ("n2", "parity", 1),
    ],
)
def test_an_earlier_nomination_prevents_preemption(nominated: str, deviations: str | None, evicted: int) -> None:
    """In parity a pod waits forever if its nominated node is deleted or full; see stale-nominations."""
    each = {"cpu": 1, "status": {"nominatedNodeName": nominated}}
    nodes = {"n1": {"cpu": 2}, "n2": {"cpu": 2, "cordoned": True}}
    scenario = {"nodes": nodes, "priorities": PRIORITIES, "jobs": {"old": old(2), "new": new(1, each=each)}}
    found = Trial(scenario, PLUGINS, "allocate, preempt", deviations=deviations)
    found.cycle()
    assert len(found.evicted) == evicted


def leaving(reason: str, priority: int) -> Manifest:
    """A terminating pod of the job old."""
    metadata = {"name": "gone", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    container = {"name": "c", "resources": {"requests": {"cpu": 1}}}
    return {
        "kind": "Pod",
        "metadata": {**metadata, "annotations": {"scheduling.k8s.io/group-name": "old"}},
        "spec": {"nodeName": "n1", "priority": priority, "schedulerName": "volcano", "containers": [container]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}],
        },
    }


@pytest.mark.parametrize(
    ("reason", "priority", "evicted"),
    [("PreemptionByScheduler", 0, 0), ("PreemptionByScheduler", 100, 1), ("EvictionByEvictionAPI", 0, 1)],
)
def test_while_victims_terminate_no_other_pod_is_evicted(reason: str, priority: int, evicted: int) -> None:
    each = {"cpu": 2, "status": {"nominatedNodeName": "n1"}}
    scenario = {
        "nodes": {"n1": {"cpu": 2, "pods": 2}},
        "priorities": PRIORITIES,
        "jobs": {"old": old(1), "new": new(1, each=each)},
        "pods": [leaving(reason, priority)],
    }
    found = Trial(scenario, PLUGINS, "preempt", deviations="parity")
    found.cycle()
    assert len(found.evicted) == evicted


def test_the_node_with_the_better_score_is_freed_first() -> None:
    nodes = {"n1": {"cpu": 2}, "n2": {"cpu": 8}}
    jobs = {"a": old(2), "b": old(8, each={"runsOn": "n2"}), "new": new(1)}
    scenario = {"nodes": nodes, "priorities": PRIORITIES, "jobs": jobs}
    plugins: list[list[Any]] = [["priority", "gang"], ["predicates", {"binpack": {}}]]
    found = Trial(scenario, plugins, "allocate, preempt")
    found.cycle()
    assert len(found.evicted) == 1
