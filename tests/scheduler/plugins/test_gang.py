"""gang: which jobs are valid, ready and starving, which tasks a gang can lose, and its conditions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial, names, opened, tasks
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.plugins.gang import Gang, PartialGangs
from volcano_py.testing.table import manifests

GANG: list[list[Any]] = [["gang"]]


def session(**jobs: Manifest) -> Session:
    return opened({"nodes": {"n1": {"cpu": 64}}, "jobs": jobs}, GANG)


def gang(minimum: int, running: int, waiting: int, **more: Any) -> Manifest:
    roles = {"r": {"pods": running, "cpu": 1, "runsOn": "n1"}, "w": {"pods": waiting, "cpu": 1}}
    return {"min": minimum, "phase": "Running" if running else "Inqueue", "tasks": roles, **more}


@pytest.mark.parametrize(("minimum", "spared"), [(0, 3), (1, 2), (2, 1), (3, 0), (4, 0)])
@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
def test_a_gang_can_lose_the_tasks_beyond_its_minimum(point: str, minimum: int, spared: int) -> None:
    found = session(first=gang(0, 1, 0), j=gang(minimum, 3, 1))
    victims = getattr(found.victims, point)(tasks(found, "first")[0], tasks(found, "j") + tasks(found, "first"))
    assert names(victims) == [*names(tasks(found, "j")[:spared]), "first-r-0"]
    context = EvictionContext("gangreclaim", found.jobs["default/j"])
    assert len(found.victims.unified_evictable(context, tasks(found, "j"))) == 4, "bundles check that"


@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
def test_with_gang_alone_no_earlier_job_loses_pods(point: str) -> None:
    jobs = {"first": gang(0, 1, 0), "later": gang(0, 1, 0)}
    [first, later] = tasks(session(**jobs))
    for evictor, victim, names_it in ((first, later, True), (later, first, False)):
        for settings, expected in (({}, names_it), ({"deviations": "parity"}, True)):
            found = opened({"nodes": {"n1": {"cpu": 64}}, "jobs": jobs}, GANG, **settings)
            assert bool(getattr(found.victims, point)(evictor, [victim])) == expected


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (gang(4, 2, 2), None),
        (gang(5, 2, 2), "Not enough valid tasks for gang-scheduling, valid: 4, min: 5"),
        (gang(4, 2, 2, minTask={"w": 3}), "Not enough valid pods of each task for gang-scheduling"),
        (gang(2, 1, 1, subGroups={"g": {"by": ["x"], "min": 1}}), None),
    ],
)
def test_invalid_jobs(job: Manifest, reason: str | None) -> None:
    found = session(j=job)
    invalid = found.states.job_valid(found.jobs["default/j"])
    if "subGroups" in job:
        assert invalid is not None and invalid.message == "Not enough valid subGroups of each task for gang-scheduling"
    else:
        assert (invalid.message if invalid else None) == reason


def test_ready_pipelined_and_starving_follow_the_placements() -> None:
    found = session(j=gang(3, 1, 2))
    job = found.jobs["default/j"]
    first, second = [t for t in tasks(found, "j") if not t.node]
    states = [(found.states.job_ready(job), found.states.job_pipelined(job), found.states.job_starving(job))]
    found.moves.place(first, 0, st.ALLOCATED)
    states.append((found.states.job_ready(job), found.states.job_pipelined(job), found.states.job_starving(job)))
    found.moves.place(second, 0, st.PIPELINED)
    states.append((found.states.job_ready(job), found.states.job_pipelined(job), found.states.job_starving(job)))
    found.moves.unplace(second)
    found.moves.place(second, 0, st.ALLOCATED)
    states.append((found.states.job_ready(job), found.states.job_pipelined(job), found.states.job_starving(job)))
    assert states == [(False, False, True), (False, False, True), (False, True, False), (True, True, False)]


def test_a_gang_waits_for_the_minimums_of_roles_and_sub_jobs() -> None:
    roles = {"a": {"pods": 2, "cpu": 1, "runsOn": "n1"}, "b": {"pods": 1, "cpu": 1}}
    found = session(j={"min": 2, "phase": "Running", "tasks": roles, "minTask": {"a": 1, "b": 1}})
    job = found.jobs["default/j"]
    assert job.is_ready() and not found.states.job_ready(job) and not found.states.job_pipelined(job)
    [b] = [t for t in tasks(found, "j") if not t.node]
    found.moves.place(b, 0, st.PIPELINED)
    assert not found.states.job_ready(job) and found.states.job_pipelined(job)
    ranks = {f"r{i}": {"cpu": 1, "labels": {"rank": str(i)}} for i in range(2)}
    ranks["r0"]["runsOn"] = "n1"
    job_of_ranks = {"min": 1, "phase": "Running", "tasks": ranks, "subGroups": {"g": {"min": 2, "by": ["rank"]}}}
    found = session(j=job_of_ranks)
    job = found.jobs["default/j"]
    assert job.is_ready() and not found.states.job_ready(job) and not found.states.job_pipelined(job)
    runs, waits = sorted(job.sub_jobs.values(), key=lambda s: s.uid)
    assert found.states.sub_job_ready(job, runs) and not found.states.sub_job_ready(job, waits)
    assert found.states.sub_job_pipelined(job, runs) and not found.states.sub_job_pipelined(job, waits)
    assert found.orders.sub_job_key(waits) < found.orders.sub_job_key(runs)


def test_jobs_that_are_not_ready_come_first() -> None:
    found = session(a=gang(1, 1, 1), b=gang(2, 1, 1))
    a, b = found.jobs["default/a"], found.jobs["default/b"]
    assert found.orders.job_key(b) < found.orders.job_key(a) and found.orders.job_rank(b) < found.orders.job_rank(a)


def conditions(trial: Trial, job: str) -> dict[str, tuple[str, str]]:
    group = trial.simulation.objects["PodGroup", f"default/{job}"]
    return {c["type"]: (c["reason"], c["message"]) for c in group["status"].get("conditions", ())}


def test_conditions_of_a_gang() -> None:
    jobs = {"ok": gang(1, 0, 1), "no": gang(3, 0, 4), "none": {"min": 1, "pods": 0, "phase": "Inqueue"}}
    trial = Trial({"nodes": {"n1": {"cpu": 3}}, "jobs": jobs}, [["gang"], ["predicates"]])
    trial.cycle()
    ready = ("tasks in gang are ready to be scheduled", "the minimum is reached: 1")
    assert conditions(trial, "ok") == {}, "one write, when its pod is bound"
    reason, message = conditions(trial, "no")["Unschedulable"]
    assert reason == "NotEnoughResources" and message.startswith(
        "1/4 tasks in gang unschedulable: pod group is not ready"
    )
    assert conditions(trial, "none") == {}
    trial.cycle()
    assert conditions(trial, "ok") == {"Scheduled": ready}


@pytest.mark.parametrize(
    ("job", "leaving", "complains"),
    [(gang(2, 2, 0), 1, False), (gang(2, 2, 1), 1, True), (gang(3, 2, 0), 1, True), (gang(2, 1, 0), 0, True)],
)
def test_a_gang_with_terminating_pods_is_not_unschedulable_yet(job: Manifest, leaving: int, complains: bool) -> None:
    found = session(j=job)
    for task in tasks(found, "j")[:leaving]:
        found.moves.evict(task, "test")
    Gang({}).on_session_close(found)
    assert (found.jobs["default/j"].conditions is not None) is complains


@pytest.mark.parametrize(
    ("release_after", "job", "after", "released"),
    [
        ("1m", gang(3, 2, 1), 59, False),
        ("1m", gang(3, 2, 1), 60, True),
        ("0", gang(3, 2, 1), 10_000, False),
        ("often", gang(3, 2, 1), 299, False),
        ("often", gang(3, 2, 1), 300, True),
        ("1m", gang(3, 2, 0), 60, False),  # no task waits to complete it
        ("1m", gang(2, 2, 1), 60, False),  # it is complete
        ("1m", gang(3, 0, 3), 60, False),  # no task holds capacity
    ],
)
def test_a_broken_gang_releases_its_capacity(release_after: str, job: Manifest, after: float, released: bool) -> None:
    running = job["tasks"]["r"]["pods"]
    scenario = {"nodes": {"n1": {"cpu": 2}}, "jobs": {"j": job}}
    trial = Trial(scenario, [["conformance", {"gang": {"releaseAfter": release_after}}], ["predicates"]])
    trial.cycle()
    assert not trial.evicted
    trial.cycle(after - 1)
    assert len(trial.evicted) == (running if released else 0)
    if released:
        text = f"gang below its minimum of 3 for {after:.0f} s: its pods release their capacity and start together"
        assert text in trial.messages("j") and "default/j" not in trial.simulation.cluster.keep(PartialGangs).since


def test_an_invalid_argument() -> None:
    assert "releaseAfter" in Gang({"releaseAfter": "often"}).warnings[0] and Gang({}).warnings == []
    negative = Gang({"releaseAfter": "-1s"})
    assert "of at least 0; 5m is used" in negative.warnings[0] and negative.release_after == 300.0


@pytest.mark.parametrize("loses", (False, True))
def test_a_gang_whose_minimum_was_raised_is_not_released(loses: bool) -> None:
    """Its two pods stay, however long the other six find no capacity; if one of the two is lost, it is released."""
    roles = {"old": {"pods": 2, "cpu": 1}, "new": {"pods": 6, "cpu": 1}}
    job = {"min": 2, "phase": "Inqueue", "tasks": {"old": roles["old"]}}
    settings = {"gang": {"releaseAfter": "5s"}}
    found = Trial({"nodes": {"n1": {"cpu": 3}}, "jobs": {"g": job}}, [[settings], ["predicates"]])
    found.cycle()
    assert found.bound == {"g-old-0", "g-old-1"}
    found.cycle()
    for o in manifests({"nodes": {}, "jobs": {"g": {**job, "min": 8, "tasks": roles}}}):
        if o["kind"] == "Pod" and "new" in o["metadata"]["name"]:
            found.simulation.put(o)
    group = found.simulation.objects["PodGroup", "default/g"]
    found.simulation.put({**group, "spec": {**group["spec"], "minMember": 8}})
    if loses:
        lost = found.simulation.objects["Pod", "default/g-old-1"]
        found.simulation.drop("Pod", "default/g-old-1")
        spec = {**lost["spec"], "nodeName": "", "nodeSelector": {"no": "where"}}
        found.simulation.put({**lost, "spec": spec, "status": {"phase": "Pending"}})
    evicted = set()
    for _ in range(4):
        found.cycle(jump=10)
        evicted |= found.evicted
    assert evicted == ({"g-old-0"} if loses else set())
