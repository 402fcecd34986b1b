"""A plugin that raises: the answer that changes least, the plugin named, the cycle goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.run_once import REGISTRY, Report, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

CLUSTER: dict[str, Any] = {
    "nodes": {"n1": {"cpu": 2}, "n2": {"cpu": 2}},
    "jobs": {
        "a": {"min": 1, "pods": 2, "each": {"cpu": 1}},
        "b": {"phase": "Running", "each": {"cpu": 1, "runsOn": "n1"}},
    },
}


def boom(*_: Any) -> Any:
    raise RuntimeError("boom")


def run(register: Callable[[Session], None], budget: int | None = None) -> tuple[list[plan.Operation], Report]:
    """One cycle with a plugin `user` that registers whatever the test says, in a tier of its own."""

    class User(Plugin):
        name = "user"

        def on_session_open(self, session: Session) -> None:
            register(session)

    registry = Registry({**REGISTRY.plugins, "user": User}, REGISTRY.actions)
    conf = load(
        configuration({"plugins": [["priority", "gang", "user"], ["predicates", "nodeorder"]]}), registry.actions
    )
    simulation = Simulation(manifests(CLUSTER))
    emitted: list[plan.Operation] = []
    report = run_once(simulation.cluster, conf, 0.0, emit=emitted.extend, registry=registry, budget=budget)
    return emitted, report


def bound(emitted: list[plan.Operation]) -> int:
    return sum(isinstance(o, plan.Bind) for o in emitted)


def test_nothing_raises_nothing_lacks() -> None:
    emitted, report = run(lambda session: None)
    assert bound(emitted) == 2 and report.faults == []


@pytest.mark.parametrize(
    "point", ["job_ready", "job_pipelined", "job_valid", "job_enqueueable", "allocatable", "overused", "pre_predicate"]
)
def test_a_vote_that_raises_is_a_no(point: str) -> None:
    emitted, report = run(lambda session: session.callbacks.add(point, "user", boom))
    if point == "job_pipelined":
        assert bound(emitted) == 2, "nobody asked"
        return
    if point == "job_enqueueable":
        assert bound(emitted) == 2, "jobs without minResources are let in without a vote"
        return
    assert bound(emitted) == 0
    assert {f.plugin for f in report.faults} == {"user"} and {f.point for f in report.faults} == {point}


@pytest.mark.parametrize("point", ["job_order", "task_order", "queue_order"])
def test_an_order_that_raises_lapses(point: str) -> None:
    emitted, _ = run(lambda session: session.callbacks.add(point, "user", boom))
    assert bound(emitted) == 2


def test_a_predicate_that_raises_refuses_the_node() -> None:
    emitted, report = run(lambda s: s.add_predicate(boom))
    assert bound(emitted) == 0
    assert report.faults[0].plugin == "user" and "boom" in report.faults[0].error


def test_a_score_that_raises_lapses() -> None:
    emitted, report = run(lambda s: s.add_node_order(boom))
    assert bound(emitted) == 2 and report.faults


def test_a_handler_that_raises_takes_the_placement_back() -> None:
    emitted, report = run(lambda s: s.add_event_handler(allocate=boom))
    assert bound(emitted) == 0
    n = report.session.numbers
    assert n.idle[0].tolist() == [1000.0, 2000.0], "nothing holds room"


def test_a_plugin_that_cannot_be_opened_lets_nobody_be_placed() -> None:
    emitted, report = run(boom)
    assert bound(emitted) == 0
    assert [f.point for f in report.faults] == ["on_session_open"]
    assert any(isinstance(o, plan.PodGroupStatus) for o in emitted), "statuses are written all the same"


def test_victims_of_a_plugin_that_raises_are_spared() -> None:
    def ask(session: Session) -> None:
        session.add_preemptable(boom)

    _, report = run(ask)
    session = report.session
    tasks = list(session.cluster.tasks.values())
    assert session.preemptable(tasks[0], tasks) == []


def test_a_budget_ends_a_cycle_and_the_next_one_goes_on_with_others() -> None:
    scenario = {
        "nodes": {"n1": {"cpu": 1}},
        "jobs": {
            "huge": {"min": 1, "pods": 1, "each": {"cpu": 9}},
            "larger": {"min": 1, "pods": 1, "each": {"cpu": 9}},
            "small": {"min": 1, "pods": 1, "each": {"cpu": 1}},
        },
    }
    conf = load(configuration({"plugins": [["gang"], ["predicates", "nodeorder"]]}), REGISTRY.actions)
    simulation = Simulation(manifests(scenario))
    bound_in = []
    for _ in range(3):
        report = run_once(simulation.cluster, conf, 0.0, budget=1)
        assert report.unfinished and simulation.cluster.dirty
        bound_in.append(report.bound)
    assert bound_in == [0, 0, 1]
