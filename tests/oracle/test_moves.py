"""The plugin consolidate on random small clusters, judged by exhaustive search."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pytest

from tests.oracle.moves import (
    Cycle,
    RunningPod,
    Setting,
    WaitingGang,
    draw,
    draw_racks,
    possible,
    starts_unmoved,
    wrong,
)
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.plugins.consolidate.held_targets import TargetFilter
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}


def with_plugins(*names: str) -> Configuration:
    plugins = [["gang"], ["predicates", "nodeorder", "proportion", *names, {"consolidate": {"patience": "0s"}}]]
    return load(configuration({"actions": "enqueue, allocate, shuffle", "plugins": plugins}), REGISTRY.actions)


CONF, IN_RACKS = with_plugins(), with_plugins("network-topology-aware")
CYCLES = 6
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))


def texts(request: dict[str, int]) -> dict[str, Any]:
    return {"cpu": request["cpu"], "memory": f"{request['memory']}Gi"}


def play(setting: Setting) -> list[Cycle]:
    jobs: dict[str, Any] = {}
    for pod in setting.pods:
        task = {"pods": 1, "runsOn": pod.node, **texts(pod.request), "metadata": {"ownerReferences": [OWNER]}}
        if pod.movable:
            task |= {"annotations": {"volcano.sh/movable": "true"}, "labels": {"budget": "one"}}
        jobs[pod.name] = {"phase": "Running", "tasks": {"x": task}}
    for gang in setting.gangs:
        jobs[gang.name] = {"min": gang.count, "pods": gang.count, "each": texts(gang.request)}
        if gang.one_rack:
            jobs[gang.name]["topology"] = {"mode": "hard", "tier": 1}
    objects = []
    if setting.budget is not None:
        budget = {
            "spec": {"selector": {"matchLabels": {"budget": "one"}}},
            "status": {"disruptionsAllowed": setting.budget},
        }
        objects.append({"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}, **budget})
    nodes = {name: texts(amounts) for name, amounts in setting.nodes.items()}
    racks = {name: {"tier": 1, "nodes": members} for name, members in setting.racks.items()}
    described = manifests({"nodes": nodes, "jobs": jobs, "objects": objects, "hyperNodes": racks})
    simulation = Simulation(described, recreates=True)
    found = []
    for _ in range(CYCLES):
        result = simulation.cycle(IN_RACKS if racks else CONF)
        assert not result.faults
        evicted = [key.removeprefix("default/").removesuffix("-x-0") for key in result.evicted]
        bound = {k.removeprefix("default/").removesuffix("-x-0"): node for k, node in result.bound.items()}
        found.append(Cycle(evicted, bound))
    return found


def check(seeds: range, draw: Callable[[int], Setting] = draw) -> tuple[int, int]:
    """How many runs moved pods, and how many could have."""
    moved = could = 0
    problems = []
    for seed in seeds:
        setting = draw(seed)
        cycles = play(setting)
        problems += [f"seed {seed}: {text}" for text in wrong(setting, cycles)]
        if len(setting.gangs) == 1 and not starts_unmoved(setting, setting.gangs[0]):
            could += possible(setting, setting.gangs[0])
            moved += any(cycle.evicted for cycle in cycles)
    assert problems == []
    return moved, could


def test_each_eviction_is_followed_by_the_start_that_justified_it() -> None:
    moved, could = check(range(60))
    assert could >= 5 and moved >= 0.6 * could, "too few of the moves that an exhaustive search finds"


def test_gangs_that_must_be_in_one_rack() -> None:
    moved, could = check(range(40), draw_racks)
    assert could >= 4 and moved >= 0.6 * could, "too few of the moves that an exhaustive search finds"


def test_without_what_is_kept_for_moved_pods_the_judge_finds_one_that_never_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = draw(488)
    assert wrong(setting, play(setting)) == []
    monkeypatch.setattr(TargetFilter, "filter", lambda self, _: np.zeros(len(setting.nodes), dtype=np.int32))
    assert any("which never run again" in text for text in wrong(setting, play(setting)))


@pytest.mark.slow
def test_many_clusters() -> None:
    moved, could = check(range(SEED, SEED + 3000))
    print(f"\n{moved} of {could} gangs that moves can start")
    assert moved >= 0.9 * could


@pytest.mark.slow
def test_many_clusters_with_racks() -> None:
    moved, could = check(range(SEED, SEED + 2000), draw_racks)
    print(f"\n{moved} of {could} gangs that moves can start in one rack")
    assert moved >= 0.9 * could


def test_the_judge_finds_what_is_wrong() -> None:
    movable = RunningPod("p0", "n0", {"cpu": 1}, True)
    setting = Setting({"n0": {"cpu": 4}, "n1": {"cpu": 4}}, [movable], [WaitingGang("g", {"cpu": 4}, 2)])
    assert possible(Setting({**setting.nodes, "n2": {"cpu": 1}}, [movable], setting.gangs), setting.gangs[0])
    assert not possible(setting, setting.gangs[0])
    gone, started = Cycle(["p0"]), Cycle([], {"g-0": "n0", "g-1": "n1"})
    assert "no gang starts" in wrong(setting, [gone])[0]
    assert wrong(setting, [gone, started]) == ["cycle 0 evicts ['p0'], which never run again"]
    assert wrong(setting, [gone, started, Cycle([], {"p0": "n1"})]) == []
    movable.movable = False
    assert "not all movable" in wrong(setting, [gone, started, Cycle([], {"p0": "n1"})])[0]
    racks = Setting(setting.nodes, [], [WaitingGang("g", {"cpu": 4}, 2, True)], racks={"r0": ["n0"], "r1": ["n1"]})
    assert not starts_unmoved(racks, racks.gangs[0])
    assert wrong(racks, [started]) == ["g is in more than one rack: ['n0', 'n1']"]
    movable.movable, setting.budget = True, 0
    assert "the budget permits 0" in wrong(setting, [gone, started, Cycle([], {"p0": "n1"})])[0]
