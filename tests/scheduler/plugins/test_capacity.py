"""capacity: from which queues a queue may reclaim, flat and in a tree, and the order of queues."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial, names, opened, tasks
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.resource import Resource

FLAT: list[list[Any]] = [["capacity"]]


def tree(level: int = 0) -> list[list[Any]]:
    return [[{"capacity": {"enableHierarchy": True, "ancestorReclaimLevel": level}}]]


def running(queue: str, pods: int, **each: Any) -> Manifest:
    return {"queue": queue, "min": 1, "pods": pods, "phase": "Running", "each": {"cpu": 1, **each, "runsOn": "n1"}}


def waiting(queue: str, **each: Any) -> Manifest:
    return {"queue": queue, "min": 1, "phase": "Inqueue", "each": {"cpu": 1, **each}}


def session(queues: Manifest, jobs: Manifest, plugins: list[list[Any]] = FLAT, **conf: Any) -> Session:
    nodes = {"n1": {"cpu": 8, "memory": "8Gi", "nvidia.com/gpu": 4}}
    return opened({"nodes": nodes, "queues": queues, "jobs": jobs}, plugins, **conf)


def reclaimed(found: Session, victim: str = "v", reclaimer: str = "r") -> int:
    return len(found.victims.reclaimable(tasks(found, reclaimer)[0], tasks(found, victim)))


# ---- flat -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("victim", "count"),
    [
        ({"deserved": {"cpu": 2}}, 2),
        ({"deserved": {"cpu": 4}}, 0),
        ({"deserved": {"cpu": "3500m"}}, 1),
        ({}, 4),
        ({"deserved": {"nvidia.com/gpu": 1}}, 4),
        ({"guarantee": {"resource": {"cpu": 3}}, "deserved": {"cpu": 3}}, 1),
        ({"guarantee": {"resource": {"cpu": 4}}}, 0),
    ],
)
def test_a_queue_loses_what_it_holds_beyond_what_it_deserves(victim: Manifest, count: int) -> None:
    found = session({"q": {"deserved": {"cpu": 4}}, "v": victim}, {"r": waiting("q"), "v": running("v", 4)})
    assert reclaimed(found) == count
    context = EvictionContext("gangreclaim", found.jobs["default/r"])
    assert len(found.victims.unified_evictable(context, tasks(found, "v"))) == count


def test_no_queue_falls_below_its_guarantee() -> None:
    queues = {"q": {"deserved": {"cpu": 4}}, "v": {"guarantee": {"resource": {"cpu": 2}}}}
    jobs = {"r": waiting("q", cpu=2), "v": running("v", 1, cpu=2), "w": running("v", 1)}
    found = session(queues, jobs)
    assert reclaimed(found, "v") == 0 and reclaimed(found, "w") == 1


def test_gangpreempt_within_a_queue_is_not_limited() -> None:
    found = session({"v": {"deserved": {"cpu": 8}}}, {"v": running("v", 2)})
    context = EvictionContext("gangpreempt", found.jobs["default/v"])
    assert len(found.victims.unified_evictable(context, tasks(found, "v"))) == 2


def test_pods_without_the_requested_resources_are_not_victims() -> None:
    jobs = {"r": waiting("q", cpu=0, **{"nvidia.com/gpu": 1}), "v": running("v", 2)}
    found = session({"q": {"deserved": {"nvidia.com/gpu": 1}}, "v": {}}, jobs)
    assert reclaimed(found) == 0


def test_the_limit_of_a_queue() -> None:
    queues = {"q": {"capability": {"cpu": 2, "nvidia.com/gpu": 1}}, "shut": {"state": "Closed"}}
    found = session(queues, {"a": running("q", 1), "b": waiting("q"), "c": waiting("q", cpu=2), "s": waiting("shut")})
    q = found.queues["q"]
    [b], [c], [s] = tasks(found, "b"), tasks(found, "c"), tasks(found, "s")
    assert found.limits.allocatable(q, b) and not found.limits.allocatable(q, c)
    assert not found.limits.allocatable(found.queues["shut"], s)
    assert not found.limits.allocatable(found.queues["default"], b), "a queue without a job is ignored"
    assert not found.limits.preemptive(found.queues["shut"], [s]) and not found.limits.preemptive(q, [c])


def test_which_queues_may_reclaim() -> None:
    """Only queues that would hold no more than they deserve of one of the requested resources."""
    queues = {"q": {"deserved": {"cpu": 2}, "capability": {"cpu": 6}}}
    found = session(queues, {"a": running("q", 1), "b": waiting("q"), "c": waiting("q", cpu=2)})
    q = found.queues["q"]
    assert found.limits.preemptive(q, tasks(found, "b")) and not found.limits.preemptive(q, tasks(found, "c"))
    assert not found.limits.preemptive(q, tasks(found, "b", "c"))


def test_a_queue_is_entitled_to_what_it_deserves() -> None:
    found = session({"q": {"deserved": {"cpu": 2}}}, {"a": running("q", 1)})
    assert found.limits.entitled is not None
    assert found.limits.entitled("q", Resource(1000)) and not found.limits.entitled("q", Resource(1001))
    assert not found.limits.entitled("default", Resource(1))


def test_which_jobs_are_admitted() -> None:
    """The allocated resources, the admitted jobs, without the elastic part; the sum may reach the capability."""
    queues = {"q": {"capability": {"cpu": 4}}, "shut": {"state": "Closed"}}
    job: Manifest = {"queue": "q", "min": 1, "pods": 1, "minResources": {"cpu": 2}}
    jobs = {
        "a": {**running("q", 2), "minResources": {"cpu": 1}},
        "b": job,
        "c": job,
        "free": {"queue": "q", "min": 1},
        "s": {"queue": "shut", "min": 1},
    }
    found = session(queues, jobs)
    assert found.states.job_enqueueable(found.jobs["default/b"])
    found.states.job_enqueued(found.jobs["default/b"])
    assert not found.states.job_enqueueable(found.jobs["default/c"])
    [note] = found.notes["PodGroup", "default/c"]
    assert note.message == "queue resource quota insufficient: insufficient cpu"
    assert found.states.job_enqueueable(found.jobs["default/free"])
    assert not found.states.job_enqueueable(found.jobs["default/s"])


def test_the_queue_with_the_smaller_share_is_served_first() -> None:
    queues: Manifest = {"a": {"deserved": {"cpu": 4}}, "b": {"deserved": {"cpu": 2}}, "c": {}, "d": {"priority": 1}}
    jobs = {"a": running("a", 1), "b": running("b", 1), "c": running("c", 1), "d": running("d", 1)}
    found = session(queues, jobs)
    q = found.queues
    order = sorted(("a", "b", "c", "d"), key=lambda n: sum(found.orders.queue_before(q[o], q[n]) for o in jobs))
    assert order == ["d", "a", "b", "c"]


def test_the_allocation_of_a_queue_follows_placements() -> None:
    found = session({"q": {"deserved": {"cpu": 4}}}, {"a": running("q", 1), "b": waiting("q", cpu=3)})
    [b], q = tasks(found, "b"), found.queues["q"]
    assert found.limits.preemptive(q, [b])
    found.moves.place(b, 0, st.ALLOCATED)
    assert not found.limits.preemptive(q, [b])
    found.moves.unplace(b)
    assert found.limits.preemptive(q, [b])


def test_metrics() -> None:
    gpu = {"nvidia.com/gpu": 1}
    queues = {"q": {"deserved": {"cpu": 1}, "capability": {"cpu": 3}}}
    trial = Trial(
        {"nodes": {"n1": gpu}, "queues": queues, "jobs": {"a": running("q", 2, **gpu)}}, [["gang"], ["capacity"]]
    )
    trial.cycle()
    found = {
        (n, label.get("resource", "")): v
        for n, label, v in trial.report.session.gauges
        if label.get("queue_name") == "q"
    }
    assert found["queue_share", ""] == 2 and found["queue_overused", ""] == 1
    assert found["queue_allocated_milli_cpu", ""] == 2000 and found["queue_capacity_milli_cpu", ""] == 3000
    assert found["queue_allocated_scalar_resources", "nvidia.com/gpu"] == 2000


# ---- in a tree ------------------------------------------------------------------------------------------------

TREE: Manifest = {
    "root": {},
    "eng": {"parent": "root", "deserved": {"cpu": 4}},
    "dev": {"parent": "eng", "deserved": {"cpu": 1}},
    "ops": {"parent": "eng", "deserved": {"cpu": 1}},
    "lab": {"parent": "root", "deserved": {"cpu": 4}},
    "bio": {"parent": "lab", "deserved": {"cpu": 1}},
}


@pytest.mark.parametrize(
    ("level", "deserved", "count"),
    [
        (0, {}, 3),  # only leaf queues are evaluated: ops deserves 1 of its 4
        (1, {}, 0),  # eng deserves 4 and holds no more
        (1, {"cpu": 2}, 2),  # eng holds 2 too many
        (2, {"cpu": 2}, 2),  # root does not count as an ancestor
    ],
)
def test_an_ancestor_within_its_deserved_amount_protects_its_descendants(
    level: int, deserved: Manifest, count: int
) -> None:
    queues = {**TREE, "eng": {**TREE["eng"], "deserved": deserved or TREE["eng"]["deserved"]}}
    found = session(queues, {"r": waiting("bio"), "v": running("ops", 4)}, tree(level))
    assert reclaimed(found) == count


def test_queues_with_a_common_ancestor_reclaim_only_what_they_deserve() -> None:
    """Below one ancestor a queue that deserves nothing of a resource does not reclaim it from its sibling."""
    queues = {**TREE, "dev": {"parent": "eng", "deserved": {"nvidia.com/gpu": 1}}, "ops": {"parent": "eng"}}
    jobs = {"r": waiting("dev"), "v": running("ops", 2), "w": waiting("bio")}
    assert reclaimed(session(queues, jobs, tree(1))) == 0
    assert reclaimed(session(queues, jobs, tree(0))) == 2
    assert reclaimed(session(queues, jobs, tree(1)), reclaimer="w") == 0, "eng holds no more than it deserves"
    poor = {**queues, "eng": {"parent": "root", "deserved": {"cpu": 1}}}
    assert reclaimed(session(poor, jobs, tree(1)), reclaimer="w") == 1


def test_a_common_ancestor_loses_nothing() -> None:
    queues = {**TREE, "eng": {"parent": "root", "deserved": {"cpu": 8}}}
    found = session(queues, {"r": waiting("dev"), "v": running("ops", 3)}, tree(1))
    assert reclaimed(found) == 2


def test_a_queue_may_reclaim_what_its_ancestors_deserve() -> None:
    jobs = {"a": running("dev", 1), "b": waiting("dev")}
    for level, may in ((0, False), (1, True)):
        found = session(TREE, jobs, tree(level))
        assert found.limits.preemptive(found.queues["dev"], tasks(found, "b")) is may


def test_a_full_queue_may_not_reclaim_what_its_ancestors_deserve() -> None:
    queues = {**TREE, "dev": {"parent": "eng", "deserved": {"cpu": 1}, "capability": {"cpu": 1}}}
    found = session(queues, {"a": running("dev", 1), "b": waiting("dev")}, tree(1))
    assert not found.limits.preemptive(found.queues["dev"], tasks(found, "b"))


def test_limits_of_ancestors_are_not_checked_before_evictions() -> None:
    eng = {"parent": "root", "deserved": {"cpu": 4, "memory": "1Gi"}, "capability": {"memory": "2Gi"}}
    queues = {**TREE, "eng": eng}
    jobs = {"a": running("ops", 1, memory="1Gi"), "c": waiting("dev", memory="2Gi"), "d": running("dev", 1)}
    found = session(queues, jobs, tree(1))
    assert found.limits.preemptive(found.queues["dev"], tasks(found, "c"))
    assert not found.limits.allocatable(found.queues["dev"], tasks(found, "c")[0])


def test_victims_in_a_deeper_queue_than_the_reclaimer() -> None:
    """Ancestors are compared level by level; below the reclaimer's level they are checked themselves."""
    queues = {**TREE, "deep": {"parent": "dev"}, "dev": {"parent": "eng", "deserved": {"cpu": 2}}}
    found = session(queues, {"r": waiting("bio"), "v": running("deep", 3)}, tree(2))
    assert reclaimed(found) == 0, "eng holds no more than it deserves"
    queues["eng"] = {"parent": "root", "deserved": {"cpu": 1}}
    found = session(queues, {"r": waiting("bio"), "v": running("deep", 3)}, tree(2))
    assert reclaimed(found) == 1, "dev holds one too many"


def test_only_leaf_queues_get_pods_and_every_ancestor_has_a_limit() -> None:
    queues = {**TREE, "eng": {"parent": "root", "capability": {"cpu": 2}}}
    job = {"queue": "ops", "min": 1, "pods": 1, "minResources": {"cpu": 2}}
    held = {**running("dev", 1), "minResources": {"cpu": 1}}
    found = session(queues, {"a": held, "b": waiting("ops"), "c": waiting("ops", cpu=2), "d": job}, tree())
    [b], [c] = tasks(found, "b"), tasks(found, "c")
    assert found.limits.allocatable(found.queues["ops"], b) and not found.limits.allocatable(found.queues["ops"], c)
    assert not found.limits.allocatable(found.queues["eng"], b)
    assert not found.states.job_enqueueable(found.jobs["default/d"])


def test_queues_are_compared_just_below_their_common_ancestor() -> None:
    """ops holds more of its own than bio, but eng holds less than lab."""
    queues = {
        **TREE,
        "eng": {"parent": "root", "deserved": {"cpu": 8}},
        "bio": {"parent": "lab", "deserved": {"cpu": 8}},
    }
    found = session(queues, {"v": running("ops", 3), "w": running("bio", 3)}, tree())
    q = found.queues
    assert found.orders.queue_before(q["ops"], q["bio"]) and not found.orders.queue_before(q["bio"], q["ops"])
    assert found.orders.queue_before(q["dev"], q["ops"]) and found.orders.queue_before(q["bio"], q["eng"])


def test_the_nearest_queue_in_the_tree_loses_first() -> None:
    found = session(TREE, {"v": running("ops", 1), "w": running("bio", 1), "r": waiting("dev")}, tree())
    q = found.queues
    assert found.orders.victim_queue_before(q["ops"], q["bio"], q["dev"])
    assert not found.orders.victim_queue_before(q["bio"], q["ops"], q["dev"])
    assert found.orders.victim_queue_before(q["ops"], q["dev"], None) != found.orders.queue_before(q["ops"], q["dev"])


def test_in_parity_an_invalid_tree_blocks_all_queues() -> None:
    queues = {"root": {}, "q": {"parent": "missing", "deserved": {"cpu": 4}}, "v": {}}
    job = {"queue": "q", "min": 1, "pods": 1, "minResources": {"cpu": 1}}
    found = session(queues, {"r": waiting("q"), "v": running("v", 4), "j": job}, tree(), deviations="parity")
    r = tasks(found, "r")
    q = found.queues["q"]
    assert not found.limits.allocatable(q, r[0]) and not found.limits.preemptive(q, r) and reclaimed(found) == 0
    context = EvictionContext("gangreclaim", found.jobs["default/r"])
    assert found.victims.unified_evictable(context, tasks(found, "v")) == []
    assert not found.states.job_enqueueable(found.jobs["default/j"])
    assert found.limits.entitled is not None and not found.limits.entitled("q", Resource(1))
    found.states.job_enqueued(found.jobs["default/j"])
    found.moves.place(r[0], 0, st.ALLOCATED)
    assert found.callbacks.faults == []


def test_in_parity_there_is_no_tree_without_a_root() -> None:
    scenario = {"nodes": {"n1": {}}, "queues": {"q": {}}, "jobs": {"a": waiting("q")}}
    trial = Trial(scenario, [["gang"], *tree()], deviations="parity")
    trial.simulation.drop("Queue", "root")
    trial.cycle()
    assert trial.report.warnings == ["plugin capacity: the queue root does not exist; create it"] and not trial.bound


def test_results_are_votes() -> None:
    found = session({"q": {}, "v": {}}, {"r": waiting("q"), "v": running("v", 1)})
    [callback] = found.callbacks.enabled("reclaimable")
    victims = callback.fn(tasks(found, "r")[0], tasks(found, "v"))
    assert (callback.plugin, names(victims)) == ("capacity", ["v-0"])
