"""The limit of owners in fairshare: bad values, and random queues checked by hand-written arithmetic."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.plugins.fairshare.plugin import Fairshare
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

NODES, CPUS = 3, 4
OWNERS = {"ann": 1.0, "bob": 1.0, "cid": 2.0}


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_bad_limit_is_a_warning(value: float) -> None:
    plugin = Fairshare({"limit": value})
    assert "there is no limit" in plugin.warnings[0] and plugin.limit == 0


def played(seed: int, limit: float) -> tuple[Counter[str], Counter[str], set[str], set[str]]:
    """What each owner held before (as cpus), what was placed, who holds or wanted something, and who waits."""
    rng = random.Random(seed)
    left = dict.fromkeys(range(NODES), CPUS)
    before: Counter[str] = Counter()
    jobs: dict[str, Any] = {}
    for i in range(rng.randrange(2, 5)):
        owner, node, cpu = rng.choice(list(OWNERS)), rng.randrange(NODES), rng.choice((1, 2, 3))
        if left[node] >= cpu:
            left[node] -= cpu
            before[owner] += cpu
            task = {"pods": 1, "runsOn": f"n{node}", "cpu": cpu}
            jobs[f"r{i}"] = {
                "phase": "Running",
                "metadata": {"labels": {"volcano.sh/owner": owner}},
                "tasks": {"x": task},
            }
    wanted: dict[str, tuple[str, int]] = {}
    for i in range(rng.randrange(2, 7)):
        owner, cpu = rng.choice(list(OWNERS)), rng.choice((1, 1, 2, 4))
        wanted[f"w{i}"] = owner, cpu
        jobs[f"w{i}"] = {"metadata": {"labels": {"volcano.sh/owner": owner}}, "each": {"cpu": cpu}}
    plugins = [["gang"], [{"fairshare": {"limit": limit, "weights": OWNERS}}, "predicates", "nodeorder"]]
    conf = load(configuration({"actions": "enqueue, allocate", "plugins": plugins}), REGISTRY.actions)
    nodes = {f"n{i}": {"cpu": CPUS, "memory": "999Gi", "pods": 999} for i in range(NODES)}
    result = Simulation(manifests({"nodes": nodes, "jobs": jobs})).cycle(conf)
    assert not result.faults
    bound = {key.removeprefix("default/").removesuffix("-0") for key in result.bound}
    placed = Counter(dict.fromkeys(OWNERS, 0))
    for name in bound:
        owner, cpu = wanted[name]
        placed[owner] += cpu
    active = set(before) | {owner for owner, _ in wanted.values()}
    waiting = {owner for name, (owner, _) in wanted.items() if name not in bound}
    return before, placed, active, waiting


def beyond(seed: int, limit: float) -> list[str]:
    """Owners that started something beyond the limit although one with less usage, by weight, still waits."""
    before, placed, active, waiting = played(seed, limit)
    whole = sum(OWNERS[owner] for owner in active)
    found = []
    for owner, cpus in placed.items():
        may = limit * NODES * CPUS * OWNERS[owner] / whole
        if cpus and before[owner] + cpus > may + 1e-6:
            level = before[owner] / OWNERS[owner]
            found += [owner for other in waiting - {owner} if before[other] / OWNERS[other] < level]
    return found


def test_no_one_takes_more_than_its_share_while_another_one_waits() -> None:
    assert [seed for seed in range(60) if beyond(seed, 1.0)] == []


def test_without_it_some_do() -> None:
    """The check finds what the limit prevents: decisions without it, checked as if it were 1."""
    found = 0
    for seed in range(60):
        before, placed, active, waiting = played(seed, 0.0)
        whole = sum(OWNERS[owner] for owner in active)
        found += any(
            cpus
            and before[owner] + cpus > NODES * CPUS * OWNERS[owner] / whole + 1e-6
            and any(before[o] / OWNERS[o] < before[owner] / OWNERS[owner] for o in waiting - {owner})
            for owner, cpus in placed.items()
        )
    assert found
