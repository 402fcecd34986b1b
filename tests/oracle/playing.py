"""Runs the scheduler over a described cluster until nothing changes. Evicted pods are recreated, as a controller does.

The only module of the oracle that imports the product.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

from tests.oracle.description import Cluster, manifests
from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation

QUIET = 3
"""Cycles without a decision after which the cluster is at rest."""
LATER = 7200.0
"""Seconds after which the cluster is still at rest: longer than every back-off."""
MOST_CYCLES = 60


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

    @property
    def evictions(self) -> int:
        return sum(len(step.evicted) for step in self.steps)


def play(cluster: Cluster, parity: bool = False, deviations: dict[str, bool] | None = None) -> Played:
    conf: Configuration = configuration(cluster.conf, parity)
    if deviations:
        conf = load(
            cluster.conf + f"\ndeviations: {deviations}\n".replace("True", "true").replace("False", "false"), ACTIONS
        )
    simulation = Simulation(manifests(cluster), now=1767268800.0)
    assert not simulation.refused, simulation.refused
    now = deepcopy(cluster)
    played = Played(now)
    quiet, jumped = 0, False
    for _ in range(MOST_CYCLES):
        result = simulation.cycle(conf)
        played.faults += result.faults
        played.texts = result.waiting
        if result.bound or result.evicted:
            quiet = 0
            bound = {key.partition("/")[2]: node for key, node in result.bound.items()}
            evicted = [key.partition("/")[2] for key in result.evicted]
            played.steps.append(Step(deepcopy(now), bound, evicted))
            _apply(now, simulation, bound, evicted)
            continue
        quiet += 1
        if quiet >= QUIET:
            if jumped:
                return played
            simulation.now += LATER
            quiet, jumped = 0, True
    played.at_rest = False
    return played


def _apply(now: Cluster, simulation: Simulation, bound: dict[str, str], evicted: list[str]) -> None:
    for gang in now.gangs:
        for i, pod in enumerate(gang.pods):
            if pod.name in bound:
                pod.node = bound[pod.name]
            if pod.name in evicted:
                gang.pods[i] = replace(pod, node="", lost=pod.lost + 1)
    again = {m["metadata"]["name"]: m for m in manifests(now) if m["kind"] == "Pod"}
    for name in evicted:
        simulation.put(deepcopy(again[name]))
