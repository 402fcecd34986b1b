"""What is kept between equal searches of one session equals a search from scratch."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.trial import Manifest, opened, tasks
from volcano_py.scheduler.actions.eviction.placed_tasks import PlacedTasks
from volcano_py.scheduler.actions.preempt import _of_other_jobs
from volcano_py.scheduler.framework.jobs import victim_order
from volcano_py.scheduler.framework.search.resolvable_nodes import ResolvableNodes
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status

PLUGINS: list[list[Any]] = [["priority", "conformance"], ["gang", "drf", "predicates", "nodeorder", "proportion"]]
Moves = list[tuple[int, int]]
MOVES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 15)), max_size=7)


def scenario(ports: bool = False) -> Manifest:
    """8 nodes of 4 cpu, full with pods of 2 in 4 gangs, and a job of pods of 2 with a high priority."""
    more: Manifest = {"hostPorts": [80]} if ports else {}
    jobs: Manifest = {
        f"low{i}": {
            "min": 1 + i % 3,
            "phase": "Running",
            "priority": "low",
            "tasks": {
                f"t{k}": {"cpu": 2, "runsOn": f"n{(4 * i + k) % 8}", **(more if i == 0 else {})} for k in range(4)
            },
        }
        for i in range(4)
    }
    jobs["high"] = {"min": 1, "pods": 6, "phase": "Inqueue", "priority": "high", "each": {"cpu": 2, **more}}
    nodes = {f"n{i}": {"cpu": 4} for i in range(8)}
    return {"nodes": nodes, "priorities": {"high": 100, "low": 1}, "jobs": jobs}


def move(session: Session, moves: Moves, done: list[Statement]) -> None:
    """Evict or place tasks, or undo what was done last."""
    for kind, pick in moves:
        statement = Statement(session)
        if kind == 0:
            running = [t for t in tasks(session, *(f"low{i}" for i in range(4))) if session.status(t) == status.RUNNING]
            if running:
                statement.evict(running[pick % len(running)], "test")
        elif kind == 1:
            waiting = session.pending(session.jobs["default/high"])
            if waiting:
                statement.pipeline(waiting[0], pick % len(session.table), evicted=False)
        elif done:
            done.pop().discard()
        if statement.steps:
            done.append(statement)


@pytest.mark.parametrize("ports", [False, True])
@given(batches=st.lists(MOVES, min_size=1, max_size=4))
def test_kept_nodes_equal_those_of_a_new_search(ports: bool, batches: list[Moves]) -> None:
    session = opened(scenario(ports), PLUGINS)
    task = tasks(session, "high")[-1]
    queue = session.queues["default"]
    placed, done = PlacedTasks(session), list[Statement]()
    for batch in [[], *batches]:
        move(session, batch, done)
        kept, new = session.placement.resolvable(task), ResolvableNodes().of(session.placement, task)
        assert kept.tolist() == new.tolist()
        permitted = _of_other_jobs(session, queue, task)
        afresh = PlacedTasks(session)
        assert placed.freeable(task, permitted).tolist() == afresh.freeable(task, permitted).tolist()
        assert placed.future.amounts().tolist() == session.numbers.future_idle().tolist()


@given(moves=MOVES, picked=st.lists(st.integers(0, 15), unique=True, max_size=16), data=st.data())
def test_sorted_victims_are_popped_as_pushed_ones(moves: Moves, picked: list[int], data: st.DataObject) -> None:
    """Also if the order of jobs changes in between: drf and gang order them by what they hold."""
    popped = []
    after = data.draw(st.lists(MOVES, min_size=len(picked), max_size=len(picked)))
    for sortable in (True, False):
        session = opened(scenario(), PLUGINS)
        done: list[Statement] = []
        move(session, moves, done)
        lows = tasks(session, *(f"low{i}" for i in range(4)))
        with patch.object(victim_order, "_sortable", lambda *_, sortable=sortable, **__: sortable):
            queue = victim_order.victims_queue(session, [lows[i] for i in picked], tasks(session, "high")[0])
        names = []
        for batch in after:
            names.append(queue.pop().name)
            move(session, batch, done)
        popped.append(names)
    assert popped[0] == popped[1]


def test_victims_of_several_queues_are_compared_in_pairs() -> None:
    described = scenario()
    described["queues"] = {"default": {}, "other": {}}
    described["jobs"]["low1"]["queue"] = "other"
    session = opened(described, PLUGINS)
    sortable = victim_order._sortable
    with patch.object(victim_order, "_sortable", side_effect=sortable) as spy:
        victim_order.victims_queue(session, tasks(session, "low0", "low1"), tasks(session, "high")[0])
        assert spy.call_count == 1 and not sortable(*spy.call_args.args, **spy.call_args.kwargs)
        victim_order.victims_queue(session, tasks(session, "low0", "low2"), tasks(session, "high")[0])
        assert sortable(*spy.call_args.args, **spy.call_args.kwargs)


def test_ranks_of_jobs_are_kept_until_a_task_of_the_job_moves() -> None:
    session = opened(scenario(), PLUGINS)
    job, other = session.jobs["default/low0"], session.jobs["default/low1"]
    with patch.object(session.callbacks, "key", side_effect=session.callbacks.key) as called:
        before, _ = session.orders.job_rank(job), session.orders.job_rank(other)
        assert session.orders.job_rank(job) == before and called.call_count == 2
        Statement(session).evict(tasks(session, "low0")[0], "test")
        assert session.orders.job_rank(job) < before  # it holds less
        session.orders.job_rank(other)
        assert called.call_count == 3
    with patch.object(session.orders, "_own_orders", session.orders._own_orders - {"drf"}):
        session.orders.keep_ranks()
        with patch.object(session.callbacks, "key", side_effect=session.callbacks.key) as called:
            assert session.orders.job_rank(job) == session.orders.job_rank(job) and called.call_count == 2
