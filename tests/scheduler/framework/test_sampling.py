"""Sampling of nodes: how many are evaluated, and where the next search begins."""

from __future__ import annotations

import numpy as np
import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.search.sampling import Rotation
from volcano_py.scheduler.model.nodes.sample_size import SampleSize
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


@pytest.mark.parametrize(
    ("count", "percentage", "target"),
    [(80, 0, 80), (100, 0, 100), (500, 0, 230), (1000, 0, 420), (5000, 0, 500), (10000, 0, 500), (1500, 5, 100)],
)
def test_the_number_of_sampled_nodes(count: int, percentage: int, target: int) -> None:
    assert SampleSize(percentage=percentage).target(count) == target


def test_a_search_begins_where_the_last_one_ended() -> None:
    rotation = Rotation()
    every = np.ones(6, dtype=bool)
    assert np.flatnonzero(rotation.sample(every, 2)).tolist() == [0, 1]
    assert np.flatnonzero(rotation.sample(every, 2)).tolist() == [3, 4]
    assert np.flatnonzero(rotation.sample(every, 2)).tolist() == [0, 1]
    some = np.array([False, True, False, False, False, True])
    assert np.flatnonzero(rotation.sample(some, 3)).tolist() == [1, 5]


@pytest.mark.parametrize("on", [True, False])
def test_without_the_deviation_a_better_node_is_missed(on: bool) -> None:
    nodes = {f"n{i:03}": {"cpu": 13 if i == 119 else 4} for i in range(120)}
    plugins = [["gang", {"nodeorder": {"leastrequested.weight": 100}}]]
    conf = {"actions": "allocate", "plugins": plugins, "deviations": {"every-node": on}}
    simulation = Simulation(manifests({"nodes": nodes, "jobs": {"a": {"each": {"cpu": 1}}}}), seed=0)
    found = simulation.cycle(load(configuration(conf), REGISTRY.actions)).bound["default/a-0"]
    assert (found == "n119") == on
