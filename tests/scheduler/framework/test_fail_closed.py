"""A plugin that raises: the safest result is used, the plugin is reported, and the cycle continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

CLUSTER: dict[str, Any] = {
    "nodes": {"n1": {"cpu": 2}, "n2": {"cpu": 2}},
    "jobs": {
        "a": {"min": 1, "pods": 2, "each": {"cpu": 1}},
        "b": {"phase": "Running", "each": {"cpu": 1, "runsOn": "n1"}},
    },
}


def fails(*_: Any) -> Any:
    raise RuntimeError("fails")


def run(register: Callable[[Session], None], budget: int | None = None) -> tuple[list[plan.Operation], CycleReport]:
    """One cycle with a plugin `user` in its own tier, with callbacks of the test."""

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


def test_without_exceptions_everything_is_placed() -> None:
    emitted, report = run(lambda session: None)
    assert bound(emitted) == 2 and report.faults == []


@pytest.mark.parametrize(
    "point", ["job_ready", "job_pipelined", "job_valid", "job_enqueueable", "allocatable", "overused", "pre_predicate"]
)
def test_a_vote_that_raises_is_a_rejection(point: str) -> None:
    emitted, report = run(lambda session: session.callbacks.add(point, fails))
    if point == "job_pipelined":
        assert bound(emitted) == 2, "no callback is called"
        return
    if point == "job_enqueueable":
        assert bound(emitted) == 2, "jobs without minResources are admitted without a vote"
        return
    assert bound(emitted) == 0
    assert {f.plugin for f in report.faults} == {"user"} and {f.point for f in report.faults} == {point}


@pytest.mark.parametrize("point", ["job_order", "task_order", "queue_order"])
def test_an_order_that_raises_is_ignored(point: str) -> None:
    emitted, _ = run(lambda session: session.callbacks.add(point, fails))
    assert bound(emitted) == 2


def test_a_predicate_that_raises_rejects_the_node() -> None:
    emitted, report = run(lambda s: s.add_predicate(fails))
    assert bound(emitted) == 0
    assert report.faults[0].plugin == "user" and "fails" in report.faults[0].error


def test_a_score_that_raises_is_ignored() -> None:
    emitted, report = run(lambda s: s.add_node_order(fails))
    assert bound(emitted) == 2 and report.faults


def test_a_handler_that_raises_undoes_the_placement() -> None:
    emitted, report = run(lambda s: s.add_event_handler(allocate=fails))
    assert bound(emitted) == 0
    n = report.session.numbers
    assert n.idle[0].tolist() == [1000.0, 2000.0], "no capacity is used"


def test_without_a_plugin_that_failed_to_open_no_pod_is_placed() -> None:
    emitted, report = run(fails)
    assert bound(emitted) == 0
    assert [f.point for f in report.faults] == ["on_session_open"]
    assert any(isinstance(o, plan.PodGroupStatus) for o in emitted), "statuses are written nevertheless"


def test_victims_of_a_plugin_that_raises_are_protected() -> None:
    def ask(session: Session) -> None:
        session.add_preemptable(fails)

    _, report = run(ask)
    session = report.session
    tasks = list(session.cluster.tasks.values())
    assert session.victims.preemptable(tasks[0], tasks) == []


def test_a_budget_ends_a_cycle_and_the_next_one_continues() -> None:
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
