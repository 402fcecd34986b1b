"""backfill binds the allocated tasks of a job that it makes ready, if there is still capacity."""

from __future__ import annotations

from tests.scheduler.trial import Manifest, Trial

PLUGINS = [["priority", "gang"]]


def test_no_pod_is_bound_where_best_effort_pods_use_the_capacity() -> None:
    """Volcano: the cache checks the capacity again before it binds, and does not bind a job in parts."""
    waits: Manifest = {
        "a": {"cpu": 0.5, "spec": {"preemptionPolicy": "Never"}},
        "b": {"pods": 2, "spec": {"priority": 5}},
    }
    scenario: Manifest = {
        "nodes": {"n1": {"cpu": 4, "pods": 3}},
        "priorities": {"high": 100},
        "jobs": {
            "c": {"min": 2, "tasks": waits, "phase": "Inqueue"},
            "d": {"min": 0, "pods": 3, "priority": "high", "phase": "Inqueue"},
        },
    }
    found = Trial(scenario, PLUGINS, "preempt, allocate, backfill", deviations="parity")
    found.cycle()
    assert found.bound == {"d-0", "d-1", "d-2"}
