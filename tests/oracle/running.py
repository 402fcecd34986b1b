"""Runs cycles of the scheduler until nothing changes. Evicted pods are recreated, as a controller does.

Imports the product to run it, as `owned` does.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache

from tests.oracle.description import Cluster, Manifest, manifests
from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation

QUIET = 3
"""Cycles without a decision after which the cluster is at rest."""
LATER = 7200.0
"""Seconds after which the cluster is still at rest: longer than every back-off."""
MOST_CYCLES = 60
NOON = 1767268800.0
"""When a run begins."""


@dataclass
class Step:
    """One cycle with a decision: the cluster before it, and what was decided."""

    before: Cluster
    bound: dict[str, str]
    evicted: list[str]


@dataclass
class Played:
    last: Cluster
    steps: list[Step] = field(default_factory=list)
    at_rest: bool = True
    faults: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    owned: dict[str, Manifest] = field(default_factory=dict)
    """The pods of owners, as they are created again."""

    @property
    def evictions(self) -> int:
        return sum(len(step.evicted) for step in self.steps)


def settings(cluster: Cluster, parity: bool = False, deviations: dict[str, bool] | None = None) -> Configuration:
    return _read(cluster.conf, parity, json.dumps(deviations) if deviations else "")


@cache
def _read(conf: str, parity: bool, deviations: str) -> Configuration:
    """Once for the clusters of a family, which share their text."""
    if not deviations:
        return configuration(conf, parity)
    return load(f"{conf}\ndeviations: {deviations}\n", ACTIONS)


def to_rest(simulation: Simulation, conf: Configuration, played: Played) -> None:
    """Run cycles until nothing is decided, also after the longest back-off."""
    quiet, jumped = 0, False
    for _ in range(MOST_CYCLES):
        if cycle(simulation, conf, played):
            quiet = 0
            continue
        quiet += 1
        if quiet >= QUIET:
            if jumped:
                return
            simulation.now += LATER
            quiet, jumped = 0, True
    played.at_rest = False


def cycle(simulation: Simulation, conf: Configuration, played: Played) -> bool:
    """Run one cycle; returns whether a pod was bound or evicted."""
    result = simulation.cycle(conf)
    played.faults += result.faults
    played.texts = result.waiting
    if not result.bound and not result.evicted:
        return False
    bound = {key.partition("/")[2]: node for key, node in result.bound.items()}
    evicted = [key.partition("/")[2] for key in result.evicted]
    played.steps.append(Step(deepcopy(played.last), bound, evicted))
    _apply(played, simulation, bound, evicted)
    return True


def _apply(played: Played, simulation: Simulation, bound: dict[str, str], evicted: list[str]) -> None:
    now = played.last
    for gang in now.gangs:
        for i, pod in enumerate(gang.pods):
            if pod.name in bound:
                pod.node = bound[pod.name]
            if pod.name in evicted:
                gang.pods[i] = replace(pod, node="", lost=pod.lost + 1)
    again = {m["metadata"]["name"]: m for m in manifests(now) if m["kind"] == "Pod"} | played.owned
    for name in evicted:
        simulation.put(deepcopy(again[name]))
