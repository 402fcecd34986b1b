"""The earliest start against a model that tries every time on every set of nodes, and what is kept between sessions."""

from __future__ import annotations

import random
from math import inf

import numpy as np
import pytest

from tests.scheduler.churn import CONF, plans
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers, Reserved, earliest_start
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, ExpectedEnds, expected_ends
from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.framework.reservations.running_pods import _build, running_pods
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

Pods = list[tuple[float, int, float]]


def by_trying(
    needs: float, count: int, limit: float, idle: list[float], pods: Pods, others: list[Reserved]
) -> float | None:
    """The first of all times at which the pods fit beside what is held for others for as long as they run."""
    for time in sorted({0.0, *(end for end, _, _ in pods), *(o.until for o in others if o.until < inf)}):
        room = 0
        for node, now in enumerate(idle):
            free = now + sum(amount for end, at, amount in pods if at == node and end <= time)
            overlap = [o for o in others if o.start < time + limit and time < o.until]
            free -= sum(float(o.amounts[0, node]) for o in overlap)
            room += max(0, int(free // needs))
        if room >= count:
            return time
    return None


@pytest.mark.parametrize("seed", range(300))
def test_the_start_is_the_earliest_of_all_times(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.randint(1, 4)
    idle = [float(rng.randint(0, 2)) for _ in range(nodes)]
    pods = sorted((float(rng.randint(1, 6)), rng.randrange(nodes), 1.0) for _ in range(rng.randint(1, 8)))
    ends = ExpectedEnds(
        np.array([p[0] for p in pods]),
        np.array([p[1] for p in pods], dtype=np.intp),
        np.array([[p[2] for p in pods]]),
        sorted({p[0] for p in pods}),
    )
    others: list[Reserved] = []
    for i in range(4):
        limit = float(rng.randint(1, 4))
        gang = [GangMembers(np.array([1.0]), [0], np.full(nodes, -inf), [object()] * rng.randint(1, nodes * 2))]  # type: ignore[list-item]
        near = rng.choice([None, 0.0, 3.0, 100.0])
        found = earliest_start(f"j{i}", gang, limit, 0.0, np.array([idle]), ends, others, near=near)
        expected = by_trying(1.0, gang[0].count, limit, idle, pods, others)
        assert (found.start if found is not None else None) == expected
        if found is not None:
            assert found.amounts.sum() == gang[0].count
            others.append(found)


@pytest.mark.parametrize("seed", range(3))
def test_running_pods_are_updated_for_the_jobs_that_changed(seed: int) -> None:
    places = 0

    def compare(simulation: Simulation, _: object) -> None:
        nonlocal places
        kept = running_pods(simulation.cluster)
        assert kept == _build(simulation.cluster)
        places += sum(map(len, kept.of.values()))

    for _ in plans(seed, 60, tiers=CONF["plugins"], begin=compare):
        pass
    assert places > 100


def kept_cluster(**more: object) -> tuple[Simulation, str]:
    started = {"startTime": "2026-01-01T00:00:00Z", "phase": "Running"}
    busy = {
        "phase": "Running",
        "metadata": {"annotations": {"volcano.sh/max-run-time": "10m"}},
        "tasks": {"x": {"pods": 1, "runsOn": "n1", "cpu": 4, "status": started}},
    }
    gangs = {f"g{i}": {"min": 2, "pods": 2, "each": {"cpu": 4}} for i in range(2)}
    for gang in gangs.values():
        gang["metadata"] = {"annotations": {"volcano.sh/max-run-time": "1h"}}
    nodes = {"n1": {"cpu": 4}, "n2": {"cpu": 4}}
    own = {"reservation": {"patience": "0s", "large-patience": "0s", "reservations": 2}}
    text = configuration({"actions": "enqueue, reserve, allocate", "plugins": [["gang"], ["predicates", own]]})
    return Simulation(manifests({"nodes": nodes, "jobs": {"busy": busy, **gangs, **more}})), text


def test_a_plan_is_kept_until_something_changes() -> None:
    simulation, text = kept_cluster()
    conf = load(text, REGISTRY.actions)

    def cycle(later: float) -> list[Reserved]:
        simulation.cluster.dirty = True
        run_once(simulation.cluster, conf, simulation.now + later)
        return simulation.cluster.keep(KeptReservations).reserved

    first = cycle(0)
    again = cycle(30)
    assert [held.job for held in first] == ["default/g0", "default/g1"]
    assert all(a is b for a, b in zip(first, again, strict=True))
    late = cycle(700)  # the job has outlived its limit, and the plans move
    assert [held.start - first[0].start for held in late] == [300, 3900]
    simulation.drop("Pod", "default/busy-x-0")
    assert [held.job for held in cycle(710)] == ["default/g1"]  # the other one has started


def test_expected_ends_are_kept_until_the_first_of_them() -> None:
    simulation, text = kept_cluster()
    conf = load(text, REGISTRY.actions)
    seen = []
    for later in (0, 1, 597, 598, 599, 50):  # the pod has run for 2 s
        report = run_once(simulation.cluster, conf, simulation.now + later, assume=False)
        seen.append(expected_ends(report.session, Estimates()))
    assert seen[0] is seen[1] is seen[2] and seen[2] is not seen[3] and seen[3] is seen[4]
    assert [found.ends[0] - simulation.now + 2 for found in seen] == [600, 600, 600, 900, 900, 600]
