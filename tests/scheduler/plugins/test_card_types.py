"""card-types: what a session keeps about the cards of nodes follows the nodes."""

from __future__ import annotations

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

TYPE = "nvidia.com/gpu.product"
CONF = load(configuration({"plugins": [["gang"], ["predicates", "card-types"]]}), REGISTRY.actions)


def test_a_gang_starts_when_the_device_plugin_of_its_node_has_started() -> None:
    """The label is there before the cards; then only an amount of the node changes."""
    jobs = {"g": {"each": {"cpu": 1, "annotations": {"volcano.sh/card-types": "A100"}}}}
    simulation = Simulation(manifests({"nodes": {"a": {"cpu": 4, "labels": {TYPE: "A100"}}}, "jobs": jobs}))
    assert simulation.cycle(CONF).bound == {}
    (node,) = manifests({"nodes": {"a": {"cpu": 4, "nvidia.com/gpu": 8, "labels": {TYPE: "A100"}}}})
    simulation.put(node)
    assert simulation.cycle(CONF).bound == {"default/g-0": "a"}


def test_another_amount_of_a_resource_does_not_count_as_a_changed_node() -> None:
    simulation = Simulation(manifests({"nodes": {"a": {"cpu": 4}}, "jobs": {"g": {"each": {"cpu": 9}}}}))
    before = simulation.cluster.nodes.generation
    simulation.cycle(CONF)
    (node,) = manifests({"nodes": {"a": {"cpu": 5}}})
    simulation.put(node)
    simulation.cycle(CONF)
    assert simulation.cluster.nodes.generation == before
