"""Classes for which every node lacks capacity are known without a search, and their reasons equal those of one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.churn import CONF, plans
from tests.scheduler.framework.test_kept_results import MOVES, PLUGINS, Moves, move
from tests.scheduler.trial import Manifest, Trial, configured, tasks
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.search import shortages
from volcano_py.scheduler.framework.search.fit_error_counts import count_fit_errors
from volcano_py.scheduler.framework.search.shortages import Shortages
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import manifests


def scenario() -> Manifest:
    """8 nodes of 4 cpu with pods of 1 and 2 in two gangs, and waiting pods of several sizes."""
    jobs: Manifest = {
        f"low{i}": {
            "min": 1,
            "phase": "Running",
            "tasks": {f"t{k}": {"cpu": 1 + i % 2, "runsOn": f"n{(4 * i + k) % 8}"} for k in range(4)},
        }
        for i in range(4)
    }
    sizes = [{"cpu": 2}, {"cpu": 3}, {"cpu": 4}, {"cpu": 5}, {"cpu": 1, "memory": "9Gi"}, {"cpu": 5, "memory": "9Gi"}]
    for i, each in enumerate(sizes):
        jobs[f"wait{i}"] = {"min": 1, "pods": 1, "phase": "Inqueue", "each": each}
    jobs["high"] = {"min": 1, "pods": 6, "phase": "Inqueue", "each": {"cpu": 2}}
    return {"nodes": {f"n{i}": {"cpu": 4, "memory": "8Gi"} for i in range(8)}, "jobs": jobs}


def session_of(simulation: Simulation) -> Session:
    begin_cycle(simulation.cluster, configured(PLUGINS), simulation.now)
    session = Session(simulation.cluster, configured(PLUGINS), simulation.now, 0, lambda _: None)
    open_plugins(session, REGISTRY, CycleReport(session), lambda *_: nullcontext())
    assert session.placement.shortages is not None
    return session


def check(session: Session) -> None:
    """Every waiting pod: the known reasons are those of a search; without a search, no node is found."""
    for task in tasks(session, *(f"wait{i}" for i in range(6))):
        assert session.placement.shortages is not None
        known = session.placement.shortages.of(task.spec_class)
        expected = count_fit_errors(session.placement, task, True)
        accepted = session.placement.accepted(task)
        if known is not None:
            assert not accepted.any()
            assert (known.counts, known.nodes, known.unresolvable) == (expected.counts, expected.nodes, None)
            assert session.placement.best(task) is None
        if not accepted.any():
            found = session.placement.fit_errors(task)
            assert (found.counts, found.nodes) == (expected.counts, expected.nodes)


def update(simulation: Simulation, pick: int) -> None:
    """A pod completes, a node shrinks or grows, or a node is added or removed."""
    kind, at = pick % 5, pick // 5
    pods = sorted(key for k, key in simulation.objects if k == "Pod" and key.startswith("default/low"))
    if kind == 0:
        pod = simulation.objects["Pod", pods[at % len(pods)]]
        simulation.put({**pod, "status": {"phase": "Succeeded"}})
    elif kind < 3:
        node = simulation.objects.get(("Node", f"n{at % 8}"))
        if node is not None:
            have = {**node["status"]["allocatable"], "cpu": "5" if kind == 1 else "3"}
            simulation.put({**node, "status": {**node["status"], "allocatable": have}})
    elif kind == 3:
        if ("Node", f"n{at % 8}") in simulation.objects:
            simulation.drop("Node", f"n{at % 8}")
    else:
        have = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        simulation.put(
            {"kind": "Node", "metadata": {"name": f"n{at % 8}"}, "spec": {}, "status": {"allocatable": have}}
        )


SESSIONS = st.lists(st.tuples(st.lists(st.integers(0, 79), max_size=3), st.lists(MOVES, max_size=3), st.booleans()))


@given(SESSIONS)
def test_known_reasons_equal_those_of_a_search(sessions: list[tuple[list[int], list[Moves], bool]]) -> None:
    simulation = Simulation(manifests(scenario()))
    for updates, batches, at_once in [([], [[]], True), *sessions[:5]]:
        for pick in updates:
            update(simulation, pick)
        session = session_of(simulation)
        done: list[Statement] = []
        if at_once:
            check(session)
        for batch in batches:
            move(session, batch, done)
            check(session)


@pytest.mark.parametrize("seed", [3, 4])
def test_plans_equal_those_without_shortages(seed: int) -> None:
    known = []

    def spied(self: Shortages, *arguments: Any, of: Callable[..., Any] = Shortages.of) -> Any:
        found = of(self, *arguments)
        known.append(found is not None)
        return found

    with patch.object(Shortages, "of", spied):
        usual = list(plans(seed, 40, tiers=CONF["plugins"]))
    with patch.object(Shortages, "of", lambda *_: None):
        assert list(plans(seed, 40, tiers=CONF["plugins"])) == usual
    assert sum(known) > 20


def test_a_later_cycle_needs_no_pass_for_pods_that_fit_nowhere() -> None:
    described = {"nodes": {f"n{i}": {"cpu": 4} for i in range(300)}, "jobs": {}}
    for i in range(20):
        described["jobs"][f"big{i}"] = {"min": 1, "pods": 1, "phase": "Inqueue", "each": {"cpu": 5 + i}}
    trial = Trial(described, PLUGINS)
    trial.cycle()
    assert trial.report.counters["vector_passes"] >= 20
    node = trial.simulation.objects["Node", "n7"]
    trial.simulation.put({**node, "metadata": {**node["metadata"], "annotations": {"a": "b"}}})
    trial.cycle()
    assert trial.report.counters == {
        "vector_passes": 0,
        "columns_refreshed": 0,
        "jobs_tried": 20,
        "tasks_tried": 20,
    }
    have = {**node["status"]["allocatable"], "cpu": "6"}
    trial.simulation.put({**node, "status": {**node["status"], "allocatable": have}})
    trial.cycle()
    assert len(trial.bound) == 1 and trial.report.counters["vector_passes"] < 5


def test_the_number_of_classes_is_limited() -> None:
    simulation = Simulation(manifests(scenario()))
    with patch.object(shortages, "MOST", 2):
        session = session_of(simulation)
        check(session)
        kept = session.placement.shortages
        assert kept is not None and 1 <= len(kept.kept._at) <= 2
    report = run_once(simulation.cluster, configured(PLUGINS), simulation.now)
    assert report.faults == []
