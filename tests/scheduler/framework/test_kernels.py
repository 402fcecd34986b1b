"""The compiled kernels give the same results as numpy, bit by bit, and take part in whole cycles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as s

from tests.scheduler.framework.test_placement import open_session
from tests.strategies import Manifest, clusters, plugin_tiers
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.kernels import choice as kernels
from volcano_py.scheduler.framework.kernels.choice import CompiledKernels, NumpyKernels
from volcano_py.scheduler.framework.search.class_view import ClassView
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

SCORES = [["gang"], ["predicates", "nodeorder", "binpack"]]
ARRAYS = ("ok", "idle", "future", "masked")


@pytest.fixture(autouse=True)
def compiled() -> Iterator[CompiledKernels]:
    pytest.importorskip("numba", reason="the extra [fast] is not installed")
    before = kernels.chosen()
    found = CompiledKernels()
    kernels.use(found)
    yield found
    kernels.use(before)


def views_equal(session: Session, numpy: Session) -> int:
    """Compare the views of all pending tasks; returns how many of them have a program."""
    programs = 0
    for job in session.jobs.values():
        for task in job.tasks.values():
            mine, other = session.placement.view(task), numpy.placement.view(task)
            programs += mine.program is not None
            assert session.placement.up_to_date(mine, task) == numpy.placement.up_to_date(other, task)
            for name in ARRAYS:
                assert getattr(mine, name).tobytes() == getattr(other, name).tobytes(), (task.key, name)
    return programs


def both(objects: list[Manifest], tiers: list[list[str]]) -> tuple[Session, Session]:
    """Two sessions over equal clusters: with compiled kernels, and with numpy."""
    mine, other = open_session(objects, tiers), open_session(objects, tiers)
    other.placement.kernels = NumpyKernels()
    assert isinstance(mine.placement.kernels, CompiledKernels)
    return mine, other


@settings(max_examples=30, deadline=None)
@given(clusters(), s.one_of(s.just(SCORES), plugin_tiers()))
def test_updated_views_are_equal(objects: list[Manifest], tiers: list[list[str]]) -> None:
    sessions = both(objects, tiers)
    views_equal(*sessions)
    for session in sessions:
        statement = Statement(session)
        tasks = [t for job in session.jobs.values() for t in session.pending(job)]
        for i, task in enumerate(tasks):
            if i % 3 == 2:
                statement.pipeline(task, i % len(session.table), evicted=False)
            else:
                statement.allocate(task, i % len(session.table))
            session.placement.view(tasks[(i * 7) % len(tasks)])
        for job in session.jobs.values():
            for task in [t for t in job.tasks.values() if session.status(t) == st.RUNNING][::2]:
                statement.evict(task, "test")
    views_equal(*sessions)


@settings(max_examples=30, deadline=None)
@given(clusters(), s.one_of(s.just(SCORES), plugin_tiers()), s.integers(0, 9))
def test_plans_are_equal(objects: list[Manifest], tiers: list[list[str]], seed: int) -> None:
    plans: list[list[plan.Operation]] = []
    for each in (CompiledKernels(), NumpyKernels()):
        kernels.use(each)
        simulation, emitted = Simulation(objects), []
        conf = load(configuration({"plugins": tiers, "actions": "enqueue, allocate, backfill"}), REGISTRY.actions)
        for cycle in range(2):
            run_once(simulation.cluster, conf, simulation.now + cycle, seed=seed, emit=emitted.extend)
        plans.append(emitted)
    assert plans[0] == plans[1]


@settings(max_examples=40, deadline=None)
@given(s.lists(s.tuples(s.sampled_from((-np.inf, -1.0, 0.0, 99.5, 100.0)), s.integers(0, 9)), max_size=12))
def test_the_best_columns_are_equal(columns: list[tuple[float, int]]) -> None:
    masked = np.array([score for score, _ in columns], dtype=np.float64)
    order = sorted(range(len(columns)), key=lambda i: (columns[i][1], i))
    ranks = np.array([order.index(i) for i in range(len(columns))], dtype=np.int64)
    assert CompiledKernels().best_column(masked, ranks) == NumpyKernels().best_column(masked, ranks)


class RuleKernels(NumpyKernels):
    """Calls the rules for every pass."""

    def prepare(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        v.few, v.few_known = None, True


def odd_node(i: int, cpu: int) -> dict[str, object]:
    """A node with few pods and a taint, or one with the usual number of pods."""
    if i % 5:
        return {"cpu": cpu, "memory": f"{cpu % 4 + 1}Gi", "pods": cpu % 3 + 2, "taints": ["a=b:PreferNoSchedule"]}
    return {"cpu": cpu, "memory": "2Gi"}


@settings(max_examples=40, deadline=None)
@given(
    cpus=s.lists(s.integers(1, 9), min_size=36, max_size=48),
    requests=s.lists(s.tuples(s.integers(0, 40), s.integers(0, 40)), min_size=10, max_size=20),
    weights=s.sampled_from(({}, {"binpack.cpu": 3, "binpack.weight": 2}, {"mostrequested.weight": 2})),
    nodes=s.lists(s.integers(0, 35), min_size=5, max_size=8, unique=True),
    waits=s.booleans(),
)
def test_few_nodes_are_as_the_rules_evaluate_them(
    cpus: list[int],
    requests: list[tuple[int, int]],
    weights: dict[str, int],
    nodes: list[int],
    waits: bool,
) -> None:
    objects = manifests(
        {
            "nodes": {f"n{i}": odd_node(i, cpu) for i, cpu in enumerate(cpus)},
            "jobs": {
                f"j{i}": {"phase": "Inqueue", "each": {"cpu": cpu / 10, "memory": f"{memory * 50}Mi"}}
                for i, (cpu, memory) in enumerate(requests)
            },
        }
    )
    nodeorder = {k: v for k, v in weights.items() if not k.startswith("binpack")}
    binpack = {k: v for k, v in weights.items() if k.startswith("binpack")}
    tiers: Any = [["gang"], ["predicates", {"nodeorder": nodeorder}, {"binpack": binpack}]]
    sessions = [open_session(objects, tiers) for _ in range(2)]
    few = 0
    for session, made in zip(sessions, (NumpyKernels(), RuleKernels()), strict=True):
        session.placement.kernels = made
        tasks = [task for job in session.jobs.values() for task in job.tasks.values()]
        statement = Statement(session)
        if waits:
            statement.pipeline(tasks[-1], 0, evicted=False)
        for task in tasks:
            session.placement.view(task)
        for i, node in enumerate(nodes):
            if waits and i % 2:
                statement.pipeline(tasks[i], node, evicted=False)
            else:
                session.moves.place(tasks[i], node, st.ALLOCATED)  # also where capacity is missing
        few += session.placement.view(tasks[0]).few is not None
    views_equal(sessions[0], sessions[1])
    assert few == 1


def test_the_default_rules_have_a_program() -> None:
    """Without it, everything would be equal because the rules are called."""
    found = manifests(
        {
            "nodes": {f"n{i}": {"cpu": 4 + i % 3, "memory": "8Gi"} for i in range(9)},
            "jobs": {f"j{i}": {"phase": "Inqueue", "each": {"cpu": 1 + i / 10}} for i in range(5)},
        }
    )
    mine, other = both(found, SCORES)
    assert views_equal(mine, other) == 5
    for session in (mine, other):
        for i, job in enumerate(session.jobs.values()):
            Statement(session).allocate(session.pending(job)[0], i % 3)
    assert views_equal(mine, other) == 5
    counts = [(session.placement.passes, session.placement.columns) for session in (mine, other)]
    assert counts == [(5, 15), (5, 15)]


def test_the_kernels_of_a_small_cluster_are_not_replaced() -> None:
    kernels.use(NumpyKernels())
    assert not kernels.worth_compiling(kernels.MANY_NODES - 1)
    assert kernels.worth_compiling(kernels.MANY_NODES) and kernels.use_compiled() == "numba"
    assert not kernels.worth_compiling(kernels.MANY_NODES)


def test_programs_that_do_not_schedule_do_not_load_the_compiler() -> None:
    code = (
        "import sys, volcano_py.cli.main, volcano_py.cli.vcctl, volcano_py.scheduler.dispatch.process, "
        "volcano_py.controllers, volcano_py.webhooks.server, volcano_py.scheduler.run_once\n"
        "sys.exit(sorted(m for m in sys.modules if m.split('.')[0] in ('numba', 'llvmlite')) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
