"""gangpreempt and gangreclaim: their victims, the nodes, and when they evict no pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial
from volcano_py.scheduler.actions.eviction.gangs import domains

PRIORITIES = {"high": 100, "low": 1}
PLUGINS: list[list[Any]] = [["priority", "gang", "conformance"], ["predicates", "nodeorder", "network-topology-aware"]]
RECLAIM: list[list[Any]] = [
    ["gang", "conformance"],
    ["predicates", "proportion", "nodeorder", "network-topology-aware"],
]


def old(pods: int = 1, minimum: int = 1, **more: Any) -> Manifest:
    each = {"cpu": 1, "runsOn": "n1", **more.pop("each", {})}
    return {"min": minimum, "pods": pods, "phase": "Running", "priority": "low", "each": each, **more}


def new(pods: int = 1, **more: Any) -> Manifest:
    return {"min": pods, "pods": pods, "phase": "Inqueue", "priority": "high", "each": {"cpu": 1}, **more}


def trial(jobs: Manifest, action: str, plugins: list[list[Any]], cpu: int = 2, **more: Any) -> Trial:
    settings = {k: more.pop(k) for k in ("configurations", "deviations") if k in more}
    scenario = {"nodes": {"n1": {"cpu": cpu}}, "priorities": PRIORITIES, "jobs": jobs, **more}
    made = Trial(scenario, plugins, f"allocate, {action}", **settings)
    made.cycle()
    return made


@pytest.mark.parametrize(
    ("victim", "goes"),
    [
        ({}, True),
        ({"priority": "high"}, False),
        ({"queue": "other"}, False),
        ({"metadata": {"annotations": {"volcano.sh/preemptable": "false"}}}, False),
        ({"each": {"annotations": {"volcano.sh/preemptable": "false"}}}, False),
        ({"priority": "", "each": {"spec": {"priorityClassName": "system-node-critical"}}}, False),
    ],
)
def test_victims_of_gangpreempt(victim: Manifest, goes: bool) -> None:
    found = trial({"old": old(2, **victim), "new": new(2)}, "gangpreempt", PLUGINS, queues={"other": {}})
    assert found.evicted == ({"old-0", "old-1"} if goes else set())


@pytest.mark.parametrize(
    ("queue", "victim", "goes"),
    [
        ({}, {"queue": "other"}, True),
        ({"reclaimable": False}, {"queue": "other"}, False),
        ({}, {}, False),
        ({}, {"queue": "other", "metadata": {"annotations": {"volcano.sh/preemptable": "false"}}}, False),
        ({}, {"queue": "other", "each": {"annotations": {"volcano.sh/preemptable": "false"}}}, False),
    ],
)
def test_victims_of_gangreclaim(queue: Manifest, victim: Manifest, goes: bool) -> None:
    queues = {"q": {}, "other": queue}
    jobs = {"old": old(**{"pods": 2, "minimum": 0, "queue": "q"} | victim), "new": new(1, queue="q")}
    found = trial(jobs, "gangreclaim", RECLAIM, queues=queues)
    assert len(found.evicted) == int(goes)


def test_a_queue_that_has_its_share_reclaims_nothing() -> None:
    queues = {"q": {}, "other": {}}
    jobs = {"mine": old(1, queue="q"), "old": old(1, 0, queue="other"), "new": new(1, queue="q")}
    assert not trial(jobs, "gangreclaim", RECLAIM, queues=queues).evicted
    queues["q"] = {"weight": 3}
    assert trial(jobs, "gangreclaim", [["gang"], ["predicates", "proportion"]], queues=queues).evicted == set()
    jobs["old"], jobs["mine"] = old(3, 0, queue="other"), old(1, queue="q")
    assert len(trial(jobs, "gangreclaim", RECLAIM, 4, queues=queues).evicted) == 1


@pytest.mark.parametrize(
    "blocked",
    [
        new(3),  # does not fit after any eviction
        new(2, minTask={"a": 2}),  # not valid: there are no such tasks
        new(1, each={"cpu": 1, "spec": {"nodeSelector": {"zone": "none"}}}),
        new(1, each={"cpu": 1, "spec": {"schedulingGates": [{"name": "mine"}]}}),
        new(1, each={}),
    ],
    ids=["too large", "not valid", "no node accepts it", "gated", "requests nothing"],
)
@pytest.mark.parametrize("deviations", [None, "parity"])
def test_no_pod_is_evicted_without_need(blocked: Manifest, deviations: str | None) -> None:
    for action in ("gangpreempt", "gangreclaim"):
        found = trial({"old": old(2, 0), "new": blocked}, action, PLUGINS, deviations=deviations)
        assert not found.evicted


@pytest.mark.parametrize(("arguments", "evicted"), [({}, 2), ({"allowWholeBundle": False}, 0), ({"maxDomains": -1}, 2)])
def test_arguments(arguments: Manifest, evicted: int) -> None:
    configurations = [{"name": "gangpreempt", "arguments": arguments}]
    jobs = {"old": old(2, 2), "new": new(1)}
    assert len(trial(jobs, "gangpreempt", PLUGINS, configurations=configurations).evicted) == evicted


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_a_job_that_is_not_admitted_evicts_no_pod(action: str) -> None:
    for phase, count in (("Pending", 0), ("Inqueue", 1)):
        jobs = {"old": old(2, 0, queue="other"), "new": new(1, phase=phase)}
        jobs["new"]["queue"] = "other" if action == "gangpreempt" else "default"
        scenario = {"nodes": {"n1": {"cpu": 2}}, "priorities": PRIORITIES, "jobs": jobs, "queues": {"other": {}}}
        found = Trial(scenario, [["priority", "gang"], ["predicates"]], action)
        found.cycle()
        assert len(found.evicted) == count


def test_a_job_that_runs_grows_by_one_sub_job() -> None:
    """The first rank runs; pods are evicted for the second one, and not for the third."""
    roles: Manifest = {f"r{i}": {"cpu": 1, "labels": {"rank": str(i)}} for i in range(3)}
    roles["r0"]["runsOn"] = "n1"
    grows = {
        "min": 1,
        "phase": "Running",
        "priority": "high",
        "tasks": roles,
        "subGroups": {"g": {"size": 1, "min": 1, "by": ["rank"]}},
    }
    plugins: list[list[Any]] = [["priority"], ["gang", "predicates", "nodeorder"]]
    found = trial({"old": old(2, 0), "new": grows}, "gangpreempt", plugins, 3)
    assert len(found.evicted) == 1
    assert found.report.pipelined() == {"default/new-r1-0": "n1"}


def test_the_gang_is_placed_in_one_domain_not_in_the_cheapest() -> None:
    nodes: Manifest = {f"n{i}": {"cpu": 1} for i in range(1, 5)}
    hyper_nodes = {"a": {"tier": 1, "nodes": ["n1", "n2"]}, "b": {"tier": 1, "nodes": ["n3", "n4"]}}
    jobs: Manifest = {f"old{i}": old(1, 0, each={"runsOn": f"n{i}"}) for i in range(1, 5)}
    jobs["new"] = new(2, topology={"mode": "hard", "tier": 1})
    scenario = {"nodes": nodes, "hyperNodes": hyper_nodes, "priorities": PRIORITIES, "jobs": jobs}
    made = Trial(scenario, PLUGINS, "allocate, gangpreempt")
    made.cycle()
    assert made.evicted in ({"old1-0", "old2-0"}, {"old3-0", "old4-0"})
    evicted = {name.removeprefix("old").removesuffix("-0") for name in made.evicted}
    made.cycle()
    bound = {o.node for o in made.emitted if type(o).__name__ == "Bind"}
    assert bound == {f"n{i}" for i in evicted}


def test_hard_topologies_without_a_domain_are_tried_nowhere() -> None:
    hyper_nodes = {"a": {"tier": 5, "nodes": ["n1"]}}
    jobs = {"old": old(2, 0), "new": new(1, topology={"mode": "hard", "tier": 1})}
    assert not trial(jobs, "gangpreempt", PLUGINS, hyperNodes=hyper_nodes).evicted


def test_domains_are_tried_once_each_up_to_a_number() -> None:
    assert domains([["a", "b"], ["a", "c"]], 8, "x") == ["a", "b", "c"]
    assert domains([["a", "b"], ["a", "c"]], 2, "x") == ["a", "b"]
    assert domains([], 8, "x") == ["x"] and domains([[]], 8, "") == []
