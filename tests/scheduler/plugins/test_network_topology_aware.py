"""network-topology-aware: the domains for a job, the best domain, and the nearest node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.scheduler.trial import Manifest, opened, tasks
from volcano_py.scheduler.framework.extension_points.hyper_nodes import ALLOCATE, EVICT
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.plugins.network_topology_aware import NetworkTopologyAware, reversed_and_capped

HARD = {"mode": "hard", "tier": 2}


def session(job: Manifest, arguments: Manifest | None = None, **jobs: Manifest) -> Session:
    """Racks a (2 nodes) and b (1), together a row; rack c; a node in no rack."""
    racks = {
        "a": {"tier": 1, "nodes": ["n0", "n1"]},
        "b": {"tier": 1, "nodes": ["n2"]},
        "c": {"tier": 1, "nodes": ["n3"]},
    }
    scenario = {
        "nodes": {f"n{i}": {"cpu": 4} for i in range(5)},
        "hyperNodes": {**racks, "row": {"tier": 2, "hyperNodes": ["a", "b"]}},
        "jobs": {"j": {"min": 1, "phase": "Inqueue", "minResources": {"cpu": 4}, "each": {"cpu": 1}, **job}, **jobs},
    }
    return opened(scenario, [["gang", {"network-topology-aware": arguments or {}}]])


def where(found: Session, purpose: str = ALLOCATE, below: str = ROOT) -> list[list[str]]:
    return found.network.job_gradients(found.jobs["default/j"], below, purpose)


def used(node: str, cpu: int) -> Manifest:
    return {"min": 1, "phase": "Running", "each": {"cpu": cpu, "runsOn": node}}


def test_domains_that_are_allowed_and_large_enough_the_lowest_tier_first() -> None:
    assert where(session({"topology": HARD})) == [["a", "b", "c"], ["row"]]
    assert where(session({"topology": {"mode": "hard", "tier": 1}})) == [["a", "b", "c"]]
    assert where(session({"topology": HARD}, old=used("n3", 1))) == [["a", "b"], ["row"]]
    assert where(session({"topology": HARD, "minResources": {"cpu": 13}})) == []
    assert where(session({"topology": HARD}), below="row") == [["a", "b"], ["row"]]
    assert where(session({"topology": {"mode": "soft"}, "minResources": {"cpu": 16}})) == [[ROOT]]
    assert where(session({}), below="b") == [["b"]], "a job without a constraint gets the given domain"


def test_for_evictions_all_capacity_counts() -> None:
    found = session({"topology": HARD}, old=used("n3", 4))
    assert where(found) == [["a", "b"], ["row"]]
    assert where(found, EVICT) == [["a", "b", "c"], ["row"]]
    assert where(session({"topology": HARD, "minResources": {"cpu": 5}}), EVICT) == [["a"], ["row"]]
    found = session({"topology": HARD}, {"hypernode.gradient.evict.max-hypernodes": 3})
    assert where(found, EVICT) == [["b", "c"], ["row"]], (
        "the widest are never left out, and of the last group its tail is"
    )


def test_a_started_job_stays_in_its_domain() -> None:
    begun = {"min": 1, "phase": "Running", "tasks": {"x": {"cpu": 1, "runsOn": "n0"}, "y": {"cpu": 1}}}
    found = session({**begun, "topology": HARD})
    assert where(found) == [["a", "b"], ["row"]]
    assert where(found, below="b") == [["b"]] and where(found, below="c") == []
    assert where(session({**begun, "topology": {"mode": "hard", "tier": 1}})) == [["a"]]
    assert where(session({**begun, "topology": {"mode": "hard", "tier": 0}})) == []


def test_gradients_are_reversed_and_limited() -> None:
    groups = [["a", "b"], ["c"], ["d", "e", "f"]]
    assert reversed_and_capped(groups, 0) == groups
    assert reversed_and_capped(groups, 2) == [["e", "f"]]
    assert reversed_and_capped(groups, 5) == [["d", "e", "f"], ["c"], ["b"]]


def test_the_fullest_domain_is_best_then_the_one_with_more_of_the_tasks() -> None:
    found = session({"topology": HARD, "pods": 2}, old=used("n2", 2))
    [sub] = found.jobs["default/j"].sub_jobs.values()
    scores = found.network.hyper_node_scores(sub, ["a", "b", "c"])
    assert scores == {"a": 25, "b": 100, "c": 50}
    found = session({"topology": HARD, "tasks": {"x": {"cpu": 1, "runsOn": "n2"}, "y": {"cpu": 3}}, "phase": "Running"})
    [sub] = found.jobs["default/j"].sub_jobs.values()
    scores = found.network.hyper_node_scores(sub, ["a", "b", "c"])
    assert scores["b"] == 0 and scores["c"] == 100, "b has one cpu too few for both of them"


def test_with_equal_scores_the_domain_with_more_of_the_tasks() -> None:
    job = {"topology": HARD, "tasks": {"x": {"runsOn": "n2"}, "y": {}}, "phase": "Running"}
    found = session(job)
    [sub] = found.jobs["default/j"].sub_jobs.values()
    assert found.network.hyper_node_scores(sub, ["a", "b"]) == {"a": 0, "b": 50}


def nearness(found: Session, name: str = "j") -> list[float]:
    task = tasks(found, name)[-1]
    [score] = found.rules.rules_of("network-topology-aware")
    scores = score.score(task, np.arange(5, dtype=np.intp))  # type: ignore[union-attr]
    return [round(float(r), 1) for r in scores]


def test_the_nearest_node_is_best() -> None:
    """Placed in a: 100 there, half of that in the same row, 0 outside; within a, the node with more of the tasks."""
    job = {"topology": HARD, "tasks": {"x": {"cpu": 1, "runsOn": "n0"}, "y": {"cpu": 1}}, "phase": "Running"}
    found = session(job)
    [sub] = found.jobs["default/j"].sub_jobs.values()
    assert nearness(found) == [0, 0, 0, 0, 0], "no task is placed yet"
    sub.current_hyper_node = "a"
    assert nearness(found) == [150, 150, 50, 0, 0]
    assert nearness(session(job, {"weight": 3}))[0] == 0


def test_pods_without_a_topology_fill_domains() -> None:
    """Higher tiers have less weight; a node in no domain of a tier counts as in a full one."""
    found = session({}, {"hypernode.binpack.normal-pod.fading": 0.5}, old=used("n2", 3))
    scores = nearness(found)
    total = 1 + 0.5 + 0.25
    assert scores[2] == round(100 * (1 * 1.0 + 0.5 * 4 / 12 + 0.25 * 4 / 20) / total, 1)
    assert scores[0] == scores[1] == round(100 * (1 * 1 / 8 + 0.5 * 4 / 12 + 0.25 * 4 / 20) / total, 1)
    assert scores[4] == round(100 * (1 + 0.5 + 0.25 * 4 / 20) / total, 1)
    off = session({}, {"hypernode.binpack.normal-pod.enable": False}, old=used("n2", 3))
    assert nearness(off) == [0] * 5


def test_without_hyper_nodes_all_nodes_have_the_same_score() -> None:
    found = opened({"nodes": {"n0": {}}, "jobs": {"j": {"min": 1}}}, [["network-topology-aware"]])
    [score] = found.rules.rules_of("network-topology-aware")
    assert score.constant(tasks(found)[0]) == 0.0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "attribute", "value"),
    [
        ({}, "weights", {"cpu": 1, "memory": 1}),
        ({"hypernode.binpack.cpu": -1, "hypernode.binpack.memory": 0}, "weights", {"cpu": 1, "memory": 0}),
        (
            {"hypernode.binpack.resources": "a.b/c, d.e/f,, g.h/i", "hypernode.binpack.resources.a.b/c": 5,
             "hypernode.binpack.resources.d.e/f": -5, "hypernode.binpack.resources.g.h/i": "x"},
            "weights",
            {"cpu": 1, "memory": 1, "a.b/c": 5, "d.e/f": 1, "g.h/i": 1},
        ),
        ({"weight": -2}, "weight", 1),
        ({"hypernode.binpack.normal-pod.fading": -0.1}, "fading", 0.8),
        ({"hypernode.gradient.evict.max-hypernodes": 0}, "most_evicted", 8),
    ],
)  # fmt: skip
def test_arguments(arguments: Manifest, attribute: str, value: Any) -> None:
    assert getattr(NetworkTopologyAware(arguments), attribute) == value
