"""Evictions: the order of nodes, and what is not repeated for equal tasks."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.trial import Manifest, Trial, opened, tasks
from volcano_py.scheduler.actions.eviction import node_order
from volcano_py.scheduler.actions.eviction.node_order import NodeScores, best_first
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.framework.task_moves import TaskMoves

PLUGINS: list[list[Any]] = [["priority", "conformance"], ["gang", "predicates", "nodeorder", "binpack", "proportion"]]
PRIORITIES = {"high": 100, "low": 1}


def scenario(nodes: int, wanted: int, **more: Any) -> Manifest:
    """Nodes of 4 cpu, full with pods of 2, and a job of pods of 2 with a high priority."""
    each = [{"cpu": 2, "runsOn": f"n{i % nodes}"} for i in range(2 * nodes)]
    jobs: Manifest = {
        f"low{i}": {"min": 1, "pods": 1, "phase": "Running", "priority": "low", "each": own}
        for i, own in enumerate(each)
    }
    jobs["high"] = {"min": wanted, "pods": wanted, "phase": "Inqueue", "priority": "high", "each": {"cpu": 2}, **more}
    return {"nodes": {f"n{i}": {"cpu": 4} for i in range(nodes)}, "priorities": PRIORITIES, "jobs": jobs}


@given(
    scores=st.lists(st.integers(0, 3).map(float), max_size=24),
    first=st.integers(1, 6),
    data=st.data(),
)
def test_nodes_are_ordered_by_score_then_by_rank(scores: list[float], first: int, data: st.DataObject) -> None:
    rank = data.draw(st.permutations(range(len(scores))))
    candidates = np.arange(len(scores)) + 7
    with patch.object(node_order, "_FIRST", first):
        found = list(node_order._sorted(candidates, np.array(scores), np.array(rank, dtype=np.int64)))
    assert found == [7 + i for i in sorted(range(len(scores)), key=lambda i: (-scores[i], rank[i]))]


def moved(session: Session, choices: list[tuple[int, int]]) -> None:
    """Evict or place tasks."""
    waiting = tasks(session, "high")
    for kind, pick in choices:
        if kind and waiting:
            Statement(session).pipeline(waiting.pop(), pick % len(session.table), evicted=False)
        elif not kind:
            here = tasks(session, f"low{pick % 12}")[0]
            Statement(session).evict(here, "test")


@pytest.mark.parametrize("spread", [False, True])
@given(batches=st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 11)), max_size=7), min_size=1, max_size=4))
def test_kept_scores_equal_those_of_a_full_evaluation(spread: bool, batches: list[list[tuple[int, int]]]) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    constraint["labelSelector"] = {"matchLabels": {"app": "x"}}  # type: ignore[assignment]
    more: Manifest = {"each": {"cpu": 2, "spec": {"topologySpreadConstraints": [constraint]}}} if spread else {}
    session = opened(scenario(6, 6, **more), PLUGINS)
    asking = tasks(session, "high")[0]
    kept, every = NodeScores(session), np.arange(len(session.table))
    for batch in batches:
        moved(session, batch)
        scores = kept.of_all(asking)
        if scores is None:
            assert spread
            continue
        for nodes in (every, np.array([4, 1])):
            assert scores[nodes].tolist() == session.placement.scores_of(asking, nodes).tolist()


def test_best_first_returns_only_the_given_nodes() -> None:
    session = opened(scenario(6, 1), PLUGINS)
    wanted = np.array([True, False, True, False, False, True])
    assert sorted(best_first(session, tasks(session, "high")[0], wanted)) == [0, 2, 5]
    assert list(best_first(session, tasks(session, "high")[0], ~np.ones(6, dtype=bool))) == []
    freeable = np.array([True, True, False, True, True, True])
    assert sorted(best_first(session, tasks(session, "high")[0], wanted, freeable)) == [0, 5]


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_a_gang_of_equal_tasks_evicts_each_victim_once(action: str) -> None:
    described = scenario(20, 15)
    if action == "reclaim":
        described["queues"] = {"default": {}, "other": {}}
        described["jobs"]["high"]["queue"] = "other"
    trial = Trial(described, PLUGINS, action)
    started = patch.object(TaskMoves, "start_eviction", autospec=True, side_effect=TaskMoves.start_eviction)
    undone = patch.object(TaskMoves, "undo_eviction", autospec=True, side_effect=TaskMoves.undo_eviction)
    with started as evictions, undone as taken_back:
        trial.cycle()
    assert len(trial.evicted) == 15
    assert evictions.call_count == 15 and taken_back.call_count == 0
    assert trial.report.counters["vector_passes"] <= 4  # one for the class, one for its scores; not one for each task
