"""Backfill binds what is allocated of a job that it makes ready, if there still is room."""

from __future__ import annotations

from tests.scheduler.trial import Manifest, Trial

PLUGINS = [["priority", "gang"]]


def test_nobody_is_bound_where_best_effort_pods_have_taken_the_room() -> None:
    """Volcano: the cache looks at room once more before it binds, and the job is not bound in parts."""
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
