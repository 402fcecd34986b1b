"""The summary of the model in the log names nodes, jobs and HyperNodes."""

from __future__ import annotations

from volcano_py.scheduler.cache.summary import lines
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import manifests


def test_every_node_job_and_hyper_node_has_a_line() -> None:
    scenario = {
        "nodes": {"n1": {"cpu": 4}, "n2": {"cpu": 2}},
        "hyperNodes": {"s1": {"tier": 1, "nodes": ["n1"]}},
        "jobs": {"g": {"min": 2, "pods": 2, "each": {"cpu": 1, "runsOn": "n1"}}, "w": {"each": {"cpu": 1}}},
    }
    text = "\n".join(lines(Simulation(manifests(scenario)).cluster))
    assert "2 nodes, 2 jobs, 3 pods" in text
    assert "node n1: idle cpu 2000.00" in text and "used cpu 2000.00" in text
    assert "job default/g: queue default, Pending, minMember 2; 2 Running" in text
    assert "job default/w: queue default, Pending, minMember 1; 1 Pending" in text
    assert "HyperNode s1: tier 1, parent none, 1 nodes" in text
    assert "MiB at the peak" in text
