"""Advance reservations over time on random small clusters. The judge reads the description and the binds alone.

No pod that may not use a Reservation runs on one of its nodes while it is active, if all keep their limits; and a pod
that fits a node which no Reservation keeps from it does not wait.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

STEP, STEPS, CPUS = 600.0, 18, 4
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))
PLUGINS = [["gang"], ["predicates", "nodeorder", {"advance-reservation": {"default-run-time": "2h"}}]]
CONF = load(configuration({"actions": "enqueue, allocate, backfill", "plugins": PLUGINS}), REGISTRY.actions)
UNSTATED = 7200.0
"""What a job without a limit counts for."""


@dataclass
class Window:
    nodes: set[str]
    start: float
    end: float
    queue: str
    """Empty: no one may use it."""


@dataclass
class Wanted:
    queue: str
    cpu: int
    limit: float
    node: str = ""
    begun: float = 0.0


class Run:
    """One cluster from its beginning to its end."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        nodes = {f"n{i}": {"cpu": CPUS} for i in range(rng.choice((1, 2, 3)))}
        described = manifests({"nodes": nodes, "queues": {"a": {}, "b": {}}})
        self.simulation = Simulation(described, now=1_767_225_600.0)
        self.begin = self.simulation.now
        self.windows: list[Window] = []
        self.pods: dict[str, Wanted] = {}
        self.left = dict.fromkeys(nodes, CPUS)
        self.problems: list[str] = []
        reservations: dict[str, Any] = {}
        for i in range(rng.choice((1, 2, 3))):
            start = self.begin + STEP * rng.randrange(0, 12)
            chosen = sorted(rng.sample(sorted(nodes), rng.randrange(1, len(nodes) + 1)))
            window = Window(set(chosen), start, start + STEP * rng.randrange(1, 8), rng.choice(("", "a", "b")))
            self.windows.append(window)
            spec: dict[str, Any] = {
                "startTime": format_time(start),
                "endTime": format_time(window.end),
                "nodes": chosen,
            }
            reservations[f"r{i}"] = spec | ({"owners": [{"queue": window.queue}]} if window.queue else {})
        for manifest in manifests({"reservations": reservations}):
            self.simulation.put(manifest)
        self.rng = rng

    def arrive(self, number: int) -> None:
        limit = STEP * self.rng.choice((1, 2, 4, 8)) - 60
        stated = self.rng.random() < 0.8
        wanted = Wanted(self.rng.choice("ab"), self.rng.choice((1, 2, 4)), limit if stated else UNSTATED)
        name = f"j{number}"
        self.pods[f"{name}-0"] = wanted
        job: dict[str, Any] = {"queue": wanted.queue, "each": {"cpu": wanted.cpu}}
        if stated:
            job["metadata"] = {"annotations": {"volcano.sh/max-run-time": f"{limit:.0f}s"}}
        for manifest in manifests({"jobs": {name: job}}):
            self.simulation.put(manifest)

    def kept_from(self, pod: Wanted, node: str, now: float) -> bool:
        """Whether a Reservation keeps a node from a pod that would start now."""
        return any(
            node in w.nodes and w.start < now + pod.limit and now < w.end and w.queue != pod.queue for w in self.windows
        )

    def step(self, number: int) -> None:
        now = self.simulation.now = self.begin + STEP * number
        for key, pod in list(self.pods.items()):
            if pod.node and pod.begun + pod.limit <= now:
                self.left[pod.node] += pod.cpu
                self.simulation.drop("Pod", f"default/{key}")
                del self.pods[key]
        for i in range(self.rng.choice((0, 1, 2))):
            self.arrive(number * 10 + i)
        result = self.simulation.cycle(CONF)
        self.problems += result.faults
        for key, node in result.bound.items():
            pod = self.pods[key.removeprefix("default/")]
            if self.kept_from(pod, node, now):
                self.problems.append(f"step {number}: {key} starts on {node}, which is reserved")
            pod.node, pod.begun = node, now
            self.left[node] -= pod.cpu
        for key, pod in self.pods.items():
            free = [n for n, cpus in self.left.items() if cpus >= pod.cpu and not self.kept_from(pod, n, now)]
            if not pod.node and free:
                self.problems.append(f"step {number}: {key} waits, and fits {free[0]}")
            for window in self.windows:
                inside = pod.node in window.nodes and window.start <= now < window.end
                if inside and pod.queue != window.queue:
                    self.problems.append(f"step {number}: {key} runs on {pod.node} in a Reservation")


def problems(seed: int) -> list[str]:
    run = Run(seed)
    for number in range(STEPS):
        run.step(number)
    return [f"seed {seed}: {text}" for text in run.problems]


def test_reservations_are_kept_and_keep_no_more() -> None:
    assert [text for seed in range(8) for text in problems(seed)] == []


@pytest.mark.slow
def test_many_clusters() -> None:
    assert [text for seed in range(SEED, SEED + 500) for text in problems(seed)] == []


def test_the_judge_finds_a_cluster_without_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    without = [["gang"], ["predicates", "nodeorder"]]
    conf = load(configuration({"actions": "enqueue, allocate, backfill", "plugins": without}), REGISTRY.actions)
    monkeypatch.setitem(globals(), "CONF", conf)
    found = " ".join(text for seed in range(6) for text in problems(seed))
    assert "which is reserved" in found and "in a Reservation" in found
