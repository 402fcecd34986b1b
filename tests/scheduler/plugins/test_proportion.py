"""proportion: what queues deserve, may hold, lose and report."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial, opened, tasks
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


@pytest.mark.parametrize(("deviations", "reported"), [(None, {0.0}), ("parity", {1.0})])
def test_an_idle_cluster_has_no_overused_queue(deviations: str | None, reported: set[float]) -> None:
    """A queue without requests deserves nothing, and holds nothing: that is not overused."""
    jobs = {"g": {"queue": "q", "min": 0, "pods": 0, "phase": "Inqueue"}}
    simulation = Simulation(manifests({"nodes": {"n1": {}}, "queues": {"q": {"weight": 1}}, "jobs": jobs}))
    conf = {"plugins": [["gang"], ["proportion"]]} | ({"deviations": deviations} if deviations else {})
    report = run_once(simulation.cluster, load(configuration(conf), REGISTRY.actions), now=0.0)
    over = {
        value for name, label, value in report.session.gauges if name == "queue_overused" and label["queue_name"] == "q"
    }
    assert over == reported


# ---- sharing --------------------------------------------------------------------------------------------------

PROPORTION: list[list[Any]] = [["proportion"]]


def requests(queue: str, cpu: float, *, holds: int = 0, **more: Any) -> Manifest:
    """A job that holds some cpus and waits for more, so that it requests `cpu` in all."""
    roles = {"r": {"pods": holds, "cpu": 1, "runsOn": "n1"}, "w": {"pods": int(cpu > holds), "cpu": cpu - holds}}
    return {"queue": queue, "min": 0, "phase": "Running" if holds else "Inqueue", "tasks": roles, **more}


def deserved(queues: Manifest, jobs: Manifest) -> dict[str, float]:
    """The cpus that each queue deserves, from the metrics."""
    trial = Trial({"nodes": {"n1": {"cpu": 12}}, "queues": queues, "jobs": jobs}, [["gang"], ["proportion"]], "shuffle")
    trial.cycle()
    gauges = trial.report.session.gauges
    return {label["queue_name"]: v / 1000 for n, label, v in gauges if n == "queue_deserved_milli_cpu"}


@pytest.mark.parametrize(
    ("queues", "wanted", "found"),
    [
        ({"a": {}, "b": {}}, (9, 9), (6, 6)),
        ({"a": {"weight": 2}, "b": {}}, (12, 12), (8, 4)),
        ({"a": {}, "b": {}}, (2, 12), (2, 10)),  # what one does not request goes to the other
        ({"a": {"weight": 5}, "b": {}}, (1, 12), (1, 11)),
        ({"a": {"capability": {"cpu": 3}}, "b": {}}, (12, 12), (3, 9)),
        ({"a": {"guarantee": {"resource": {"cpu": 10}}}, "b": {}}, (12, 12), (10, 2)),
        ({"a": {"guarantee": {"resource": {"cpu": 4}}}, "b": {"weight": 3}}, (1, 12), (4, 8)),
        ({"a": {}, "b": {}}, (3, 4), (3, 4)),
    ],
)
def test_water_filling(queues: Manifest, wanted: tuple[int, int], found: tuple[float, float]) -> None:
    result = deserved(queues, {name: requests(name, cpu) for name, cpu in zip("ab", wanted, strict=True)})
    assert (result["a"], result["b"]) == found


def session(queues: Manifest, jobs: Manifest, **settings: Any) -> Session:
    return opened(
        {"nodes": {"n1": {"cpu": 12, "memory": "12Gi"}}, "queues": queues, "jobs": jobs}, PROPORTION, **settings
    )


def test_a_queue_gets_what_it_deserves_and_no_more() -> None:
    """5 + 3 are more than half of 12, 5 + 1 are not."""
    for more, may in ((3, False), (1, True)):
        jobs = {"j": requests("a", 5 + more, holds=5), "k": requests("b", 9)}
        found = session({"a": {}, "b": {}}, jobs, deviations={"whole-pod-shares": False})
        a = found.queues["a"]
        task = next(t for t in tasks(found, "j") if not t.node)
        assert found.limits.allocatable(a, task) is may and found.limits.preemptive(a, [task]) is may
        assert not found.limits.preemptive(a, [task, task])


def test_a_pod_may_exceed_the_share_of_its_queue_by_a_part() -> None:
    """Shares of 6: a queue that holds 5 gets a pod of 3, one that holds 6 gets none."""
    for holds, may in ((5, True), (6, False)):
        jobs = {"j": requests("a", holds + 3, holds=holds), "k": requests("b", 9)}
        found = session({"a": {}, "b": {}}, jobs)
        task = next(t for t in tasks(found, "j") if not t.node)
        assert found.limits.allocatable(found.queues["a"], task) is may


def test_a_closed_queue_gets_nothing() -> None:
    found = session({"c": {"state": "Closed"}}, {"j": requests("c", 1)})
    assert not found.limits.allocatable(found.queues["c"], tasks(found)[0])
    assert not found.limits.preemptive(found.queues["c"], tasks(found))


def test_a_queue_that_holds_what_it_deserves_is_overused() -> None:
    found = session(
        {"a": {}, "b": {}, "c": {}}, {"j": requests("a", 6, holds=6), "k": requests("b", 9), "l": requests("c", 1)}
    )
    overused = {q for q in "abc" if found.limits.overused(found.queues[q])}
    assert overused == {"a"}
    for task in tasks(found, "j")[:3]:
        found.moves.evict(task, "test")
    assert not found.limits.overused(found.queues["a"]), "its allocation follows its tasks"


@pytest.mark.parametrize(("holds", "victims"), [(8, 3), (6, 1), (5, 0)])
def test_a_queue_loses_what_it_holds_beyond_what_it_deserves(holds: int, victims: int) -> None:
    """Half of 12 is its own, less half of the third's request; a pod is a victim while that amount is exceeded."""
    found = session(
        {"a": {}, "b": {}, "c": {}},
        {"j": requests("a", 12, holds=holds), "k": requests("b", 12), "l": requests("c", 2)},
    )
    reclaimer = tasks(found, "k")[-1]
    running = [t for t in tasks(found, "j") if t.node]
    assert len(found.victims.reclaimable(reclaimer, running)) == victims


def test_orders_of_queues() -> None:
    queues: Manifest = {"a": {"weight": 2}, "b": {}, "c": {"priority": 1}}
    found = session(
        queues, {"j": requests("a", 12, holds=1), "k": requests("b", 12, holds=2), "l": requests("c", 12, holds=4)}
    )
    q, before = found.queues, found.orders.queue_before
    assert before(q["c"], q["a"]) and not before(q["a"], q["c"]), "priority first"
    assert before(q["a"], q["b"]) and not before(q["b"], q["a"]), "then the smaller part of what it deserves"


def minimum(queue: str, cpu: int) -> Manifest:
    return {"queue": queue, "min": 1, "pods": 0, "minResources": {"cpu": cpu}}


def test_which_jobs_are_admitted() -> None:
    """The allocated resources without the elastic part, and those of admitted jobs, up to the limit of the queue."""
    jobs = {
        "old": requests("a", 3, holds=2, minResources={"cpu": 1}),
        "let": {**minimum("a", 1), "phase": "Inqueue"},
        "five": minimum("a", 5),
        "four": minimum("a", 4),
        "any": {"queue": "a", "min": 1, "pods": 0},
        "shut": minimum("c", 1),
    }
    found = session({"a": {"capability": {"cpu": 6}}, "c": {"state": "Closed"}}, jobs)
    answers = {
        name: found.states.job_enqueueable(found.jobs[f"default/{name}"]) for name in ("five", "four", "any", "shut")
    }
    assert answers == {"five": False, "four": True, "any": True, "shut": False}
    [note] = found.notes["PodGroup", "default/five"]
    assert note.message == "queue resource quota insufficient: insufficient cpu"
    found.states.job_enqueued(found.jobs["default/four"])
    assert not found.states.job_enqueueable(found.jobs["default/four"])


def test_pending_jobs_are_admitted_by_weight() -> None:
    jobs = {"j": minimum("a", 2), "k": minimum("b", 2)}
    found = session({"a": {"weight": 2}, "b": {}}, jobs)
    q, before = found.queues, found.orders.queue_before
    assert before(q["a"], q["b"])
    found.states.job_enqueued(found.jobs["default/j"])
    assert before(q["b"], q["a"]) and not before(q["a"], q["b"])
    found.states.job_enqueued(found.jobs["default/k"])
    assert before(q["a"], q["b"]), "2 of weight 2 are less than 2 of weight 1"


def test_what_a_queue_is_entitled_to() -> None:
    found = session(
        {"a": {"weight": 2}, "b": {"capability": {"cpu": 3}}}, {"j": requests("a", 2, holds=1), "k": requests("b", 1)}
    )
    assert found.limits.entitled is not None
    assert found.limits.entitled("a", Resource(7000)) and not found.limits.entitled("a", Resource(7001))
    assert found.limits.entitled("b", Resource(3000)) and not found.limits.entitled("b", Resource(3001))


def test_metrics() -> None:
    jobs = {"j": requests("a", 9, holds=3), "let": {**minimum("a", 2), "phase": "Inqueue"}, "k": requests("b", 9)}
    scenario = {
        "nodes": {"n1": {"cpu": 12}},
        "queues": {"a": {"weight": 3, "capability": {"cpu": 8}}, "b": {}},
        "jobs": jobs,
    }
    trial = Trial(scenario, [["gang"], ["proportion"]], "shuffle")
    trial.cycle()
    found = {n.removeprefix("queue_"): v for n, label, v in trial.report.session.gauges if label == {"queue_name": "a"}}
    assert found["allocated_milli_cpu"] == 3000 and found["request_milli_cpu"] == 11_000
    assert (
        found["deserved_milli_cpu"] == 8000 and found["real_capacity_milli_cpu"] == found["capacity_milli_cpu"] == 8000
    )
    assert found["inqueue_milli_cpu"] == 2000 and found["weight"] == 3 and found["share"] == 3 / 4, (
        "three of its four pods"
    )
    assert found["overused"] == 0
