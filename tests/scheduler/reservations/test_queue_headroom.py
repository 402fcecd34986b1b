"""What the limits of a queue lack for a gang, against arithmetic on the amounts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.book import book_of
from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers
from volcano_py.scheduler.framework.reservations.queue_headroom import lacking_in_queues
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
        gang.append(
            GangMembers(task.spec_class.vector(table), task.spec_class.checked_rows(table), None, [task] * pods)
        )  # type: ignore[arg-type]
    found = lacking_in_queues(session, session.queues["q"], gang)
    assert all(each.queue == "q" for each in found) and len(found) <= 1
    lacking = found[0].amounts if found else [0.0] * len(table.rows)
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


@pytest.mark.parametrize("seed", range(40))
def test_a_gang_starts_when_all_limits_above_it_permit_it(seed: int) -> None:
    """Random trees of queues on a cluster with enough nodes: only the limits decide, counted minute by minute."""
    rng = random.Random(seed)
    names = [f"q{i}" for i in range(rng.randint(3, 6))]
    above = {name: rng.choice(["root", *names[:i]]) for i, name in enumerate(names)}
    most = {name: rng.choice([None, rng.randint(6, 30)]) for name in names}
    leaves = [name for name in names if name not in above.values()]
    mine = rng.choice(leaves)
    queues: dict[str, Any] = {
        name: {"parent": above[name], **({"capability": {"cpu": cpu}} if (cpu := most[name]) else {})} for name in names
    }
    busy: dict[str, Any] = {}
    held: list[tuple[str, int, float]] = []
    for i in range(rng.randint(1, 8)):
        queue, cpu, minutes = rng.choice(leaves), rng.randint(1, 4), rng.choice([None, rng.randint(1, 20)])
        limit = {"annotations": {"volcano.sh/max-run-time": f"{minutes}m"}} if minutes else {}
        tasks = {"x": {"pods": 1, "runsOn": f"b{i}", "cpu": cpu}}
        busy[f"b{i}"] = {"queue": queue, "phase": "Running", "metadata": limit, "tasks": tasks}
        held.append((queue, cpu, minutes or float("inf")))
    needs = rng.randint(2, 12)
    gang = {"queue": mine, "min": needs, "pods": needs, "metadata": {"annotations": {"volcano.sh/max-run-time": "1h"}}}
    nodes = {**{f"b{i}": {"cpu": 4} for i in range(len(busy))}, **{f"n{i}": {"cpu": 1} for i in range(needs)}}
    own = {"reservation": {"patience": "0s", "large-patience": "0s"}}
    plugins = [["gang"], ["predicates", {"capacity": {"enableHierarchy": True}}, own]]
    conf = configuration({"actions": "enqueue, reserve", "plugins": plugins})
    jobs = {**busy, "gang": {**gang, "each": {"cpu": 1}}}
    simulation = Simulation(manifests({"nodes": nodes, "queues": queues, "jobs": jobs}))
    session = run_once(simulation.cluster, load(conf, REGISTRY.actions), simulation.now).session

    def path(queue: str) -> list[str]:
        return [queue, *path(above[queue])] if queue != "root" else []

    def permitted(minute: int) -> bool:
        return all(
            sum(cpu for queue, cpu, end in held if end > minute and name in path(queue)) + needs <= limit
            for name in path(mine)
            if (limit := most[name]) is not None
        )

    expected = next((minute for minute in range(21) if permitted(minute)), None)
    book = book_of(session)
    assert book is not None
    found = [round((each.start - session.now) / 60, 6) for each in book.reserved]
    if expected == 0:
        assert not found and "default/gang" not in {job.uid for job in session.jobs.active() if session.pending(job)}
    elif session.jobs["default/gang"].is_pending():
        assert expected is None and not found, "not admitted"
    else:
        assert found == ([] if expected is None else [expected])
