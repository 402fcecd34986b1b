"""reclaim: which queue reclaims, from which queues, and how much."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial

PLUGINS: list[list[Any]] = [["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]]


def old(pods: int, queue: str = "rich", **more: Any) -> Manifest:
    each = {"cpu": 1, "runsOn": "n1", **more.pop("each", {})}
    return {"min": 0, "pods": pods, "phase": "Running", "queue": queue, "each": each, **more}


def new(pods: int, queue: str = "poor", **more: Any) -> Manifest:
    return {"min": 1, "pods": pods, "phase": "Inqueue", "queue": queue, "each": {"cpu": 1}, **more}


def trial(jobs: Manifest, queues: Manifest | None = None, actions: str = "allocate, reclaim", **settings: Any) -> Trial:
    given = {"rich": {}, "poor": {}, **(queues or {})}
    made = Trial({"nodes": {"n1": {"cpu": 4}}, "queues": given, "jobs": jobs}, PLUGINS, actions, **settings)
    made.cycle()
    return made


@pytest.mark.parametrize("deviations", [None, "parity"])
@pytest.mark.parametrize(
    ("job", "evicted"),
    [
        (new(1), 1),
        (new(2, min=2), 2),
        (new(4, min=2), 2),  # no more than its share
        (new(3, min=3), 0),  # its share is not enough for the gang
        (new(1, each={"cpu": 2}), 2),
        (new(1, each={"cpu": 3}), 0),
        (new(1, each={"cpu": 1, "spec": {"preemptionPolicy": "Never"}}), 0),
        (new(1, each={"cpu": 1, "spec": {"schedulingGates": [{"name": "mine"}]}}), 0),
        (new(1, each={"cpu": 1, "spec": {"nodeSelector": {"no": "where"}}}), 0),
        (new(1, min=2), 0),  # not valid
        (new(1, queue="rich"), 0),
    ],
)
def test_number_of_victims(job: Manifest, evicted: int, deviations: str | None) -> None:
    assert len(trial({"old": old(4), "new": job}, deviations=deviations).evicted) == evicted


@pytest.mark.parametrize(
    ("victim", "queue"),
    [
        ({}, {"reclaimable": False}),
        ({"each": {"annotations": {"volcano.sh/preemptable": "false"}}}, {}),
        ({"queue": "poor"}, {}),
    ],
)
def test_pods_that_are_never_victims(victim: Manifest, queue: Manifest) -> None:
    assert not trial({"old": old(4, **victim), "new": new(1)}, {"rich": queue}).evicted


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_job_that_is_not_admitted_reclaims_nothing(phase: str) -> None:
    found = trial({"old": old(4), "new": new(1, phase=phase)}, actions="reclaim")
    assert len(found.evicted) == int(phase == "Inqueue")


def test_a_queue_that_holds_its_share_reclaims_nothing() -> None:
    jobs = {"old": old(2), "mine": old(2, "poor"), "new": new(1)}
    assert not trial(jobs).evicted
    assert len(trial(jobs, {"poor": {"weight": 3}}).evicted) == 1


def test_queues_are_served_in_their_order_and_jobs_in_theirs() -> None:
    queues = {"first": {"priority": 5}, "rich": {}, "poor": {}}
    found = trial({"old": old(4), "a": new(1), "b": new(1, "first"), "c": new(1, "first")}, queues)
    assert "default/b-0" in found.report.pipelined() and len(found.evicted) == len(found.report.pipelined())


def test_a_job_that_eviction_cannot_help_does_not_block_the_next() -> None:
    big = new(1, each={"cpu": 9})
    found = trial({"old": old(4), "big": big, "new": new(1)})
    assert set(found.report.pipelined()) == {"default/new-0"} and len(found.evicted) == 1


def test_nodes_are_freed_by_name_and_only_as_far_as_necessary() -> None:
    jobs = {"b": old(2, each={"runsOn": "b"}), "a": old(2, each={"runsOn": "a"}), "new": new(1)}
    scenario = {"nodes": {"b": {"cpu": 2}, "a": {"cpu": 2}}, "queues": {"rich": {}, "poor": {}}, "jobs": jobs}
    found = Trial(scenario, PLUGINS, "allocate, reclaim")
    found.cycle()
    assert found.report.pipelined() == {"default/new-0": "a"} and found.evicted == {"a-1"}
