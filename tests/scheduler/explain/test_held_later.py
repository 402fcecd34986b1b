"""What explain states about nodes that are held for a waiting job later, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.explain.blocker import causes
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

TEN = {"annotations": {"volcano.sh/max-run-time": "10m"}}
BUSY: dict[str, Any] = {"phase": "Running", "metadata": TEN, "tasks": {"x": {"pods": 1, "runsOn": "n1", "cpu": 4}}}
LATER = "No nodes are held for the job yet: if it does not start before, they are from "
GANG: dict[str, Any] = {"min": 2, "pods": 2, "metadata": TEN, "each": {"cpu": 4}}


def stated(arguments: dict[str, Any], after: float, busy: dict[str, Any] = BUSY, *, reserves: bool = True) -> list[str]:
    """The sentences about the gang `g`, some seconds after its creation."""
    actions = "enqueue, reserve, allocate" if reserves else "enqueue, allocate"
    plugins = [["gang"], ["predicates", "nodeorder", {"reservation": arguments}]]
    conf = configuration({"actions": actions, "plugins": plugins})
    jobs = {"busy": busy, "first": GANG, "g": GANG}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 4}, "n2": {"cpu": 4}}, "jobs": jobs}))
    created = simulation.cluster.jobs["default/g"].created
    assert created == 1_767_225_602.0  # two seconds after 2026-01-01T00:00:00Z
    report = run_once(simulation.cluster, load(conf, REGISTRY.actions), created + after)
    found = causes(report.session, report.session.jobs["default/g"])
    return [sentence_of(each) for each in found[1:]]


def test_nodes_are_held_once_the_patience_has_ended() -> None:
    # the gang is the whole cluster: an eighth of the patience of a job that is just large
    expected = f"{LATER}2026-01-01 02:01 UTC on."
    assert stated({"large-patience": "16h"}, 3600) == [expected]
    assert stated({"large-patience": "16h"}, 7199) == [expected]


def test_nodes_are_held_once_it_has_waited_for_as_long_as_it_takes() -> None:
    # after 100 s of waiting, `busy` ends in 600 s; it has waited for half of it after 400 s
    [text] = stated({"large-patience": "0s", "hold-ratio": 1, "reservations": 2}, 100)
    assert text.startswith(f"{LATER}2026-01-01 00:")


def test_others_come_first() -> None:
    expected = ["Nodes are held for 1 job at a time, and 1 job comes before this one."]
    assert stated({"large-patience": "0s"}, 3600) == expected


def test_what_runs_has_no_limit() -> None:
    [text] = stated({"large-patience": "0s", "reservations": 2}, 3600, BUSY | {"metadata": {}})
    assert text == "Nodes cannot be held for the job: by the limits of what runs, there is no time at which it fits."


@pytest.mark.parametrize(
    ("arguments", "reserves"), [({"reservations": 0}, True), ({"large-patience": "0s"}, False), ({}, False)]
)
def test_nothing_is_stated_where_nodes_are_held_for_no_job(arguments: dict[str, Any], reserves: bool) -> None:
    assert stated(arguments, 3600, reserves=reserves) == []
