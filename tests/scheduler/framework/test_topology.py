"""The ancestors of HyperNodes, and the lowest HyperNode that contains the nodes of a job."""

from __future__ import annotations

from typing import Any

from tests.scheduler.trial import opened
from volcano_py.scheduler.framework.network.topology import ROOT, HyperNodeTree, topology_of
from volcano_py.scheduler.model.nodes.hyper_nodes import HyperNodeInfo, HyperNodes
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import manifests

SCENARIO: dict[str, Any] = {
    "nodes": {f"n{i}": {} for i in range(5)},
    "hyperNodes": {
        "a": {"tier": 1, "nodes": ["n0", "n1"]},
        "b": {"tier": 1, "nodes": ["n2", "gone"]},
        "ab": {"tier": 2, "hyperNodes": ["a", "b"]},
        "c": {"tier": 1, "nodes": ["n3"]},
    },
}


def topology(scenario: dict[str, Any] = SCENARIO) -> HyperNodeTree:
    return opened(scenario, [["gang"]]).topology


def test_the_whole_cluster_is_above_all() -> None:
    t = topology()
    assert (
        t.ancestors("a") == ["a", "ab", ROOT] and t.ancestors(ROOT) == [ROOT] and t.ancestors("unknown") == ["unknown"]
    )
    assert t.below(ROOT) == [ROOT, "ab", "c", "a", "b"] and t.below("ab") == ["ab", "a", "b"]
    assert t.tiers == [1, 2, 3] and t.root_tier == 3 and t.of_tier(1) == ["a", "b", "c"] and t.tier(ROOT) == 3
    assert not t.flat and topology({"nodes": {"n1": {}}}).flat


def test_only_nodes_that_exist_are_columns() -> None:
    t = topology()
    assert t.columns("b").tolist() == [2] and t.columns(ROOT).tolist() == [0, 1, 2, 3, 4]
    assert t.mask("ab").tolist() == [True, True, True, False, False]


def test_lowest_common_ancestor() -> None:
    t = topology()
    assert (
        t.lowest_common("a", "b") == "ab" and t.lowest_common("a", "ab") == "ab" and t.lowest_common("a", "c") == ROOT
    )
    assert t.lowest_common("", "a") == t.lowest_common("a", "") == "a"
    assert t.lowest_common("a", "unknown") == ""


def test_the_lowest_hyper_node_that_contains_nodes() -> None:
    t = topology()
    assert t.around([0, 1]) == "a" and t.around([1, 2]) == "ab" and t.around([0, 4]) == ROOT and t.around([]) == ""
    assert [t.leaf(n) for n in range(5)] == ["a", "a", "b", "c", ""]


def test_a_parent_that_only_the_parent_specifies() -> None:
    """Only one object may specify the link if another one is invalid; a lower tier is never the parent."""
    infos = {
        "top": HyperNodeInfo("top", 2, "", ("leaf", "lost"), frozenset()),
        "leaf": HyperNodeInfo("leaf", 1, "", (), frozenset({"n0"})),
        "odd": HyperNodeInfo("odd", 1, "", ("top",), frozenset()),
    }
    table = opened(SCENARIO, [["gang"]]).table
    t = HyperNodeTree(HyperNodes(infos, {}, {}), table)
    assert t.ancestors("leaf") == ["leaf", "top", ROOT] and t.ancestors("top") == ["top", ROOT]


def test_it_is_rebuilt_only_when_the_network_has_changed() -> None:
    simulation = Simulation(manifests(SCENARIO))
    before = topology_of(simulation.cluster)
    assert topology_of(simulation.cluster) is before
    simulation.drop("HyperNode", "c")
    assert topology_of(simulation.cluster).of_tier(1) == ["a", "b"]
