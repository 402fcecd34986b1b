"""Runs the product over a described cluster until nothing changes."""

from __future__ import annotations

from copy import deepcopy

from tests.oracle.description import Cluster, manifests
from tests.oracle.owned import create_in_turns
from tests.oracle.running import NOON, Played, settings, to_rest
from volcano_py.simulate.cycles import Simulation


def play(cluster: Cluster, parity: bool = False, deviations: dict[str, bool] | None = None) -> Played:
    conf = settings(cluster, parity, deviations)
    simulation = Simulation(manifests(cluster), now=NOON)
    assert not simulation.rejected, simulation.rejected
    played = Played(deepcopy(cluster))
    create_in_turns(simulation, conf, played)
    to_rest(simulation, conf, played)
    return played
