"""consolidate: bad arguments, what users read, and what is kept between sessions."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.explain.blocker import causes
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.plugins.consolidate.held_targets import AGAIN, MovesInProgress
from volcano_py.scheduler.plugins.consolidate.plugin import Consolidate
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
MOVABLE = {"annotations": {"volcano.sh/movable": "true"}, "metadata": {"ownerReferences": [OWNER]}}


def conf(**arguments: Any) -> Configuration:
    plugins = [["gang"], ["predicates", "nodeorder", {"consolidate": {"patience": "0s", **arguments}}]]
    return load(configuration({"actions": "enqueue, allocate, shuffle", "plugins": plugins}), REGISTRY.actions)


def simulated() -> Simulation:
    jobs = {
        "a": {"phase": "Running", "tasks": {"x": {"pods": 1, "runsOn": "n1", "cpu": 1, **MOVABLE}}},
        "b": {"phase": "Running", "tasks": {"x": {"pods": 1, "runsOn": "n2", "cpu": 1}}},
        "gang": {"each": {"cpu": 4}},
    }
    return Simulation(manifests({"nodes": {"n1": {"cpu": 4}, "n2": {"cpu": 4}}, "jobs": jobs}))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"patience": "-1h"},
            "patience is '-1h', and must be a duration such as 90s or 1h30m, of at least 0; 5m is used",
        ),
        ({"patience": "soon"}, "5m is used"),
        ({"longest-run": "x"}, "there is no limit"),
        ({"gangs": 0}, "gangs is 0, and must be from 1 to 64; 4 is used"),
        ({"gangs": 999}, "4 is used"),
    ],
)
def test_bad_arguments_are_warnings(arguments: dict[str, Any], text: str) -> None:
    [warning] = Consolidate(arguments).warnings
    assert text in warning


def test_a_dry_run_is_reported_and_explained() -> None:
    simulation = simulated()
    report = run_once(simulation.cluster, conf(**{"dry-run": True}), simulation.now, assume=False)
    job = report.session.jobs["default/gang"]
    text = sentence_of(causes(report.session, job)[0])
    assert text == "The job would start by moving 1 pod (default/a-x-0 fits n2); the plugin consolidate has dry-run."
    events = [op.message for op in report.plan if getattr(op, "reason", "") == "ConsolidationPossible"]
    assert events == ["the gang would start by moving 1 pod: default/a-x-0 fits n2"]
    assert not simulation.cluster.keep(MovesInProgress).moved


def test_moves_are_reported_explained_and_forgotten_after_a_while() -> None:
    simulation = simulated()
    report = run_once(simulation.cluster, conf(), simulation.now, assume=False)
    text = sentence_of(causes(report.session, report.session.jobs["default/gang"])[0])
    assert text == "1 pod is moved so that the job starts (default/a-x-0 fits n2)."
    assert any(getattr(op, "reason", "") == "Consolidating" for op in report.plan)
    kept = simulation.cluster.keep(MovesInProgress)
    assert set(kept.moved) == {"default/a"} and set(kept.at) == {"default/gang"}
    kept.moved["default/a"].ready = 5  # it is never placed again
    run_once(simulation.cluster, conf(), simulation.now + AGAIN - 1, assume=False)
    assert kept.moved
    run_once(simulation.cluster, conf(**{"dry-run": True}), simulation.now + AGAIN, assume=False)
    assert not kept.moved and not kept.at
    run_once(simulation.cluster, conf(), simulation.now + AGAIN, assume=False)
    assert kept.moved
    run_once(simulation.cluster, conf(**{"dry-run": True}), simulation.now, assume=False)
    assert not kept.moved, "a clock that jumps back ends it"


def test_a_cycle_runs_when_the_patience_ends() -> None:
    simulation = simulated()
    job = simulation.cluster.jobs["default/gang"]
    report = run_once(simulation.cluster, conf(patience="10m"), simulation.now, assume=False)
    assert report.session.next_wake == report.session.jobs[job.uid].created + 600
