"""drf: dominant shares of jobs, and with hierarchy of queues."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial, names, opened, tasks
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st

DRF: list[list[Any]] = [["drf"]]
HIERARCHY: list[list[Any]] = [[{"drf": {"enableHierarchy": True}}]]


def session(jobs: Manifest, plugins: list[list[Any]] = DRF, queues: Manifest | None = None) -> Session:
    nodes = {"n1": {"cpu": 10, "memory": "100Mi", "nvidia.com/gpu": 2}}
    return opened({"nodes": nodes, "jobs": jobs, "queues": queues or {}}, plugins)


def running(pods: int = 1, **each: Any) -> Manifest:
    queue = each.pop("queue", "default")
    return {"min": 0, "pods": pods, "phase": "Running", "queue": queue, "each": {**each, "runsOn": "n1"}}


def waiting(**each: Any) -> Manifest:
    return {"min": 1, "phase": "Inqueue", "queue": each.pop("queue", "default"), "each": each}


def test_the_dominant_share() -> None:
    jobs = {
        "cpu": running(cpu=3, memory="10Mi"),
        "memory": running(cpu=1, memory="40Mi"),
        "gpu": running(**{"nvidia.com/gpu": 1}),
        "none": waiting(cpu=1),
    }
    found = session(jobs)
    order = sorted(found.jobs.values(), key=found.orders.job_key)
    assert [j.name for j in order] == ["none", "cpu", "memory", "gpu"]


def test_shares_move_with_placements() -> None:
    found = session({"a": running(cpu=2), "b": waiting(cpu=3)})
    a, b = found.jobs["default/a"], found.jobs["default/b"]
    [task] = tasks(found, "b")
    assert found.orders.job_rank(a) > found.orders.job_rank(b)
    found.moves.place(task, 0, st.ALLOCATED)
    assert found.orders.job_rank(a) < found.orders.job_rank(b) and found.orders.job_key(b)[0] == pytest.approx(0.3)
    found.moves.unplace(task)
    assert found.orders.job_rank(a) > found.orders.job_rank(b) and found.orders.job_key(b)[0] == 0


@pytest.mark.parametrize(
    ("mine", "theirs", "victims"),
    [
        (1, 4, 3),  # after the third they would hold as much as the preemptor
        (2, 4, 2),
        (3, 4, 1),
        (4, 4, 0),
        (5, 4, 0),
    ],
)
def test_a_job_with_the_larger_share_loses_pods_until_the_shares_are_equal(
    mine: int, theirs: int, victims: int
) -> None:
    found = session({"v": running(theirs, cpu=1), "p": waiting(cpu=mine)})
    [preemptor] = tasks(found, "p")
    assert names(found.victims.preemptable(preemptor, tasks(found, "v"))) == [f"v-{i}" for i in range(victims)]


def test_each_victim_job_is_evaluated_separately() -> None:
    found = session({"v": running(2, cpu=1), "w": running(3, cpu=1), "p": waiting(cpu=1)})
    assert names(found.victims.preemptable(tasks(found, "p")[0], tasks(found, "v", "w"))) == ["v-0", "w-0", "w-1"]


def test_pods_of_jobs_without_a_queue_change_no_share() -> None:
    found = session({"v": running(2, cpu=1), "lost": {**running(2, cpu=1), "queue": "gone"}, "p": waiting(cpu=1)})
    [p] = tasks(found, "p")
    lost = tasks(found, "lost")
    assert names(found.victims.preemptable(p, [*lost, *tasks(found, "v")])) == ["v-0"]
    assert found.victims.preemptable(lost[0], tasks(found, "v")) == []


def test_shares_are_reported() -> None:
    trial = Trial(
        {"nodes": {"n1": {"cpu": 4}}, "jobs": {"a": running(cpu=1), "b": waiting(cpu=2)}},
        [["gang"], ["drf", "predicates"]],
    )
    trial.cycle()
    assert reported_shares(trial) == {"a": 0.25, "b": 0.5}
    trial.simulation.drop("Pod", "default/a-0")
    trial.cycle()
    assert reported_shares(trial) == {"a": 0, "b": 0.5}
    trial.cycle()
    assert reported_shares(trial)["b"] == 0.5
    trial.cycle()
    assert "b" not in reported_shares(trial), "nothing has changed since b was reported"
    node: Manifest = {"kind": "Node", "metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "4"}}}
    trial.simulation.put(node)
    trial.cycle()
    assert reported_shares(trial) == {"a": 0, "b": 0.25}, "the shares of all jobs have changed"


def reported_shares(trial: Trial) -> dict[str, float]:
    return {name: v for n, _, name, v in trial.report.session.job_gauges if n == "job_share"}


def at(path: str, weights: str) -> Manifest:
    return {"annotations": {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}}


QUEUES = {"dev": at("root/eng/dev", "1/2/2"), "ops": at("root/eng/ops", "1/2/8"), "sci": at("root/sci", "1/1")}


@pytest.mark.parametrize(
    ("dev", "ops", "sci", "order"),
    [
        (2, 1, 1, ["ops", "dev", "sci"]),  # eng: 3 of weight 2; within it ops by weight 8
        (1, 3, 3, ["ops", "dev", "sci"]),
        (2, 2, 1, ["sci", "ops", "dev"]),
    ],
)
def test_queues_are_ordered_by_the_tree(dev: int, ops: int, sci: int, order: list[str]) -> None:
    jobs: Manifest = {}
    for name, pods in (("dev", dev), ("ops", ops), ("sci", sci)):
        jobs[name] = running(pods, cpu=1, queue=name)
        jobs[f"{name}-more"] = waiting(cpu=5, queue=name)
        jobs[name]["tasks"] = {"r": {"pods": pods, "cpu": 1, "runsOn": "n1"}, "w": {"pods": 4, "cpu": 1}}
    found = session(jobs, HIERARCHY, QUEUES)
    q = found.queues
    before = {(a, b) for a in QUEUES for b in QUEUES if a != b and found.orders.queue_before(q[a], q[b])}
    wanted = {(a, b) for i, a in enumerate(order) for b in order[i + 1 :]}
    assert before == wanted


def test_in_a_tree_the_branch_with_the_smaller_share_reclaims() -> None:
    def demanding(queue: str, pods: int) -> Manifest:
        roles = {"r": {"pods": pods, "cpu": 1, "runsOn": "n1"}, "w": {"pods": 9, "cpu": 1}}
        return {"min": 0, "phase": "Running", "queue": queue, "tasks": roles}

    found = session({"dev": demanding("dev", 6), "sci": demanding("sci", 1)}, HIERARCHY, QUEUES)
    runs = [t for t in tasks(found, "dev") if t.node]
    [reclaimer, *_] = [t for t in tasks(found, "sci") if not t.node]
    q = found.queues
    order = found.orders.queue_before(q["sci"], q["dev"])
    assert names(found.victims.reclaimable(reclaimer, runs)) == names(runs)
    assert found.orders.queue_before(q["sci"], q["dev"]) is order, "a trial changes nothing"
    [other, *_] = [t for t in tasks(found, "dev") if not t.node]
    assert found.victims.reclaimable(other, [t for t in tasks(found, "sci") if t.node]) == []


def test_without_a_job_in_the_session_nothing_is_reclaimed() -> None:
    found = session({"v": running(2, cpu=1), "lost": {**running(1, cpu=1), "queue": "gone"}}, HIERARCHY)
    [lost] = tasks(found, "lost")
    assert found.victims.reclaimable(lost, tasks(found, "v")) == []
    assert found.victims.reclaimable(tasks(found, "v")[0], [lost]) == []
