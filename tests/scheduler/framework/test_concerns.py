"""Callbacks that do nothing for a task are not called for it, and what a session has decided is assumed once."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from tests.scheduler.trial import Manifest, Trial
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.run_once import REGISTRY, run_once

SMALL, LARGE, BROKEN = 1000.0, 2000.0, 3000.0
SCENARIO: Manifest = {
    "nodes": {"n": {"cpu": 32}},
    "jobs": {
        f"{name}{i}": {"min": 1, "pods": 1, "phase": "Inqueue", "each": {"cpu": cpu / 1000}}
        for name, cpu in (("small", SMALL), ("large", LARGE), ("broken", BROKEN))
        for i in range(2)
    },
}


def run(concerns: Any) -> tuple[list[str], list[str], list[str], set[str]]:
    """The names of the pods for which the handler and the pre-bind were called, the points of faults, and the bound
    pods."""
    placed: list[str] = []
    written: list[str] = []

    class Ours(Plugin):
        name = "ours"

        def on_session_open(self, session: Session) -> None:
            session.add_event_handler(lambda task, _: placed.append(task.name), concerns=concerns)
            session.add_pre_bind(lambda task, _: written.append(task.name), concerns=concerns)

    trial = Trial(SCENARIO, [["gang"], ["predicates", "nodeorder", "ours"]])
    registry = Registry({**REGISTRY.plugins, "ours": Ours}, REGISTRY.actions)
    report = run_once(trial.simulation.cluster, trial.conf, trial.simulation.now, registry=registry)
    bound = {o.name for o in report.plan if isinstance(o, plan.Bind)}
    return placed, written, sorted({fault.point for fault in report.faults}), bound


def test_callbacks_are_called_for_the_tasks_that_they_concern() -> None:
    placed, written, faults, bound = run(lambda task: task.request.milli_cpu == LARGE)
    assert len(bound) == 6 and faults == []
    assert len(placed) == len(written) == 2 and all(name.startswith("large") for name in placed + written)
    placed, written, _, _ = run(None)
    assert len(placed) == len(written) == 6


def test_callbacks_whose_concerns_raise_are_called() -> None:
    def concerns(task: Task) -> bool:
        if task.request.milli_cpu == BROKEN:
            raise ValueError("broken")
        return False

    placed, written, faults, bound = run(concerns)
    assert faults == ["allocate_event", "pre_bind"] and len(bound) == 6
    assert len(placed) == len(written) == 2 and all(name.startswith("broken") for name in placed + written)


def test_each_status_is_assumed_once() -> None:
    waits = {"min": 2, "pods": 2, "phase": "Inqueue", "each": {"cpu": 30}}
    jobs = {**SCENARIO["jobs"], **{f"waits{i}": waits for i in range(3)}}
    trial = Trial({**SCENARIO, "jobs": jobs}, [["gang"], ["predicates", "nodeorder"]])
    with patch.object(Cluster, "assume_status", autospec=True, side_effect=Cluster.assume_status) as assumed:
        trial.cycle()
    kinds = {type(operation) for operation in trial.emitted}
    assert len(kinds) > 2 and assumed.call_count == len(trial.report.session.new_statuses) == 3
