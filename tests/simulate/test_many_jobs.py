"""The search for changes is limited by the work of its trials, not only by their number."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulate.test_suggestions import CONF
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.plan import Operation
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.explained import explained
from volcano_py.simulate.unblock import search
from volcano_py.simulate.unblock import trials as trials_of
from volcano_py.simulate.unblock.trials import Trials
from volcano_py.testing.table import manifests


def trials(jobs: int) -> Trials:
    waiting: dict[str, Any] = {f"j{i}": {"phase": "Inqueue", "each": {"cpu": 3}} for i in range(jobs)}
    running = {"old": {"phase": "Running", "each": {"cpu": 3, "runsOn": "n1"}}}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 4}}, "jobs": {**running, **waiting}}))
    return Trials(simulation.cluster, load(CONF, REGISTRY.actions), simulation.now)


def test_fewer_changes_are_tried_if_many_jobs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    few = trials(40)
    assert search.suggestions(few, "default/j39", explained(few, "default/j39").blockers)
    assert not search.is_over(few)
    monkeypatch.setattr(search, "_MOST_WORK", 120)
    many = trials(40)
    search.suggestions(many, "default/j39", explained(many, "default/j39").blockers)
    assert search.is_over(many) and many.count <= 6 < few.count


def test_a_trial_reports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses and conditions of all jobs would cost as much as the placement."""
    plans: list[list[Operation]] = []
    run = trials_of.run_once

    def recorded(*args: Any, **options: Any) -> Any:
        report = run(*args, **options)
        plans.append(report.plan)
        return report

    monkeypatch.setattr(trials_of, "run_once", recorded)
    trials(5).session()
    assert plans == [[]]
