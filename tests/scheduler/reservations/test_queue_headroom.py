"""What the limits of a queue lack for a gang, against arithmetic on the amounts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.book import book_of
from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers
from volcano_py.scheduler.framework.reservations.queue_headroom import lacking_in_queue
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


@pytest.mark.parametrize("seed", range(20))
def test_amounts_are_lacking_not_whole_pods(seed: int) -> None:
    """The capability of cpu and memory (GiB), what is held of them, and a gang of one or two kinds of pods."""
    rng = random.Random(seed)
    have, held = {"cpu": rng.randint(4, 40), "memory": rng.randint(4, 40)}, rng.randint(1, 4)
    kinds = [(rng.randint(1, 5), rng.randint(1, 5), rng.randint(1, 6)) for _ in range(rng.randint(1, 2))]
    busy = {"queue": "q", "phase": "Running", "tasks": {"x": {"pods": 1, "runsOn": "n0", "cpu": held, "memory": "1Gi"}}}
    tasks: dict[str, Any] = {
        f"t{n}": {"pods": pods, "cpu": cpu, "memory": f"{memory}Gi"} for n, (cpu, memory, pods) in enumerate(kinds)
    }
    given = {
        "nodes": {f"n{i}": {"cpu": 64, "memory": "64Gi"} for i in range(4)},
        "queues": {"q": {"capability": {"cpu": have["cpu"], "memory": f"{have['memory']}Gi"}}},
        "jobs": {"busy": busy, "gang": {"queue": "q", "min": 99, "tasks": tasks}},
    }
    conf = configuration({"actions": "enqueue", "plugins": [["gang"], ["predicates", "capacity"]]})
    simulation = Simulation(manifests(given))
    session = run_once(simulation.cluster, load(conf, REGISTRY.actions), simulation.now).session
    table = session.table
    gang = []
    for cpu, _, pods in kinds:
        tasks_of = session.jobs["default/gang"].tasks.values()
        task = next(t for t in tasks_of if t.status == st.PENDING and t.request["cpu"] == 1000 * cpu)
        gang.append(GangMembers(task.spec_class.vector(table), task.spec_class.checked_rows(table), pods, None, task))  # type: ignore[arg-type]
    lacking = lacking_in_queue(session, session.queues["q"], gang)
    memories = {cpu: memory for cpu, memory, _ in reversed(kinds)}  # kinds with equal cpu take the first one's pods
    for name, needs, used in (
        ("cpu", sum(cpu * pods for cpu, _, pods in kinds), held),
        ("memory", sum(memories[cpu] * pods for cpu, _, pods in kinds), 1),
    ):
        unit = 1000 if name == "cpu" else 2**30
        expected = max(0, needs - (have[name] - used)) * unit
        assert lacking[table.rows[name]] == pytest.approx(expected, abs=1e-6 * needs * unit), (name, kinds)


def test_few_jobs_are_looked_at_in_a_cycle_for_which_nodes_are_not_held_yet() -> None:
    limit = {"annotations": {"volcano.sh/max-run-time": "10m"}}
    busy = {"phase": "Running", "metadata": limit, "tasks": {"x": {"pods": 1, "runsOn": "n1", "cpu": 4}}}
    gangs = {f"g{i:02d}": {"min": 2, "pods": 2, "metadata": limit, "each": {"cpu": 4}} for i in range(30)}
    own = {"reservation": {"large-patience": "0s", "hold-ratio": 1}}
    conf = configuration({"actions": "enqueue, reserve", "plugins": [["gang"], ["predicates", "nodeorder", own]]})
    given = {"nodes": {"n1": {"cpu": 4}, "n2": {"cpu": 4}}, "jobs": {"busy": busy, **gangs}}
    simulation = Simulation(manifests(given))
    session = run_once(simulation.cluster, load(conf, REGISTRY.actions), simulation.now).session
    book = book_of(session)
    assert book is not None and len(book.first) == 30 and not book.reserved and book.planned == 9
    assert session.next_wake > simulation.now
