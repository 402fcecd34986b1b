"""The forest of HyperNodes: links, all types of members, and their faults."""

from __future__ import annotations

from typing import Any

from volcano_py.api.codec import from_manifest
from volcano_py.api.topology import HyperNode
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.nodes.hyper_nodes import build
from volcano_py.simulate.manifests import as_struct

NODES: dict[str, dict[str, str]] = {f"n{i}": {"row": "a" if i < 3 else "b"} for i in range(6)}


def hyper_node(name: str, tier: int, *members: dict[str, Any], tier_name: str = "") -> HyperNode:
    spec = {"tier": tier, "tierName": tier_name, "members": list(members)}
    made: HyperNode = from_manifest(HyperNode, {"metadata": {"name": name}, "spec": spec})
    return made


def node(name: str) -> dict[str, Any]:
    return {"type": "Node", "selector": {"exactMatch": {"name": name}}}


def pattern(text: str) -> dict[str, Any]:
    return {"type": "Node", "selector": {"regexMatch": {"pattern": text}}}


def labels(**wanted: str) -> dict[str, Any]:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": wanted}}}


def child(name: str) -> dict[str, Any]:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def test_members_of_all_selectors_are_united_with_those_below() -> None:
    made = build(
        [
            hyper_node("top", 2, child("exact"), child("rest")),
            hyper_node("exact", 1, node("n0"), node("not-there")),
            hyper_node("rest", 1, pattern("^n[12]$"), labels(row="b"), tier_name="rack"),
        ],
        NODES,
    )
    assert made.ready and not made.problems and made.tier_of_name == {"rack": 1}
    assert made.infos["exact"].nodes == {"n0", "not-there"}
    assert made.infos["rest"].nodes == {"n1", "n2", "n3", "n4", "n5"}
    assert made.infos["top"].nodes == {*NODES, "not-there"} and made.infos["top"].children == ("exact", "rest")
    assert made.infos["exact"].parent == made.infos["rest"].parent == "top"


def test_a_second_parent_and_a_cycle_are_left_out_and_reported() -> None:
    made = build(
        [
            hyper_node("a", 2, child("leaf")),
            hyper_node("b", 2, child("leaf")),
            hyper_node("leaf", 1, node("n0")),
            hyper_node("x", 3, child("y")),
            hyper_node("y", 3, child("x")),
        ],
        NODES,
    )
    assert not made.ready
    assert made.problems == {
        "b": "HyperNode leaf already has a parent a, and cannot set another parent b",
        "y": "cyclic dependency detected: HyperNode x is already in the ancestor chain of y",
    }
    assert made.infos["a"].nodes == {"n0"} and made.infos["b"].nodes == frozenset()
    assert made.infos["y"].parent == "x" and made.infos["x"].parent == ""


def test_invalid_selectors_are_reported_and_the_others_are_used() -> None:
    bad = {"type": "Node", "selector": {"labelMatch": {"matchExpressions": [{"key": "row", "operator": "Near"}]}}}
    made = build([hyper_node("a", 1, pattern("(?=x)"), node("n0")), hyper_node("b", 1, bad, node("n1"))], NODES)
    assert made.ready  # the links are valid; Volcano continues as well
    assert "regexMatch.pattern '(?=x)' cannot be used" in made.problems["a"]
    assert "Near" in made.problems["b"]
    assert made.infos["a"].nodes == {"n0"} and made.infos["b"].nodes == {"n1"}


def test_a_malicious_pattern_takes_linear_time() -> None:
    """A backtracking engine would need 2^60 steps for each of these names."""
    nodes: dict[str, dict[str, str]] = {"a" * 60 + f"!{i}": {} for i in range(200)}
    made = build([hyper_node("slow", 1, pattern("(a+)+$"), pattern("(a|aa)+$"))], nodes)
    assert made.infos["slow"].nodes == frozenset() and not made.problems


def test_a_chain_deeper_than_any_recursion() -> None:
    depth = 3000
    chain = [hyper_node(f"h{i:04d}", i + 1, child(f"h{i - 1:04d}") if i else node("n0")) for i in range(depth)]
    made = build(chain, NODES)
    assert made.infos[f"h{depth - 1:04d}"].nodes == {"n0"}


def test_the_forest_follows_nodes_and_their_labels() -> None:
    cluster = Cluster()
    members = [labels(row="a")]
    manifest = {"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}}
    cluster.upsert("HyperNode", as_struct(manifest))
    for name, row in (("n0", "a"), ("n1", "b")):
        cluster.upsert("Node", as_struct({"kind": "Node", "metadata": {"name": name, "labels": {"row": row}}}))
    before = cluster.hyper_nodes
    assert before.infos["h"].nodes == {"n0"} and cluster.hyper_nodes is before
    cluster.upsert("Node", as_struct({"kind": "Node", "metadata": {"name": "n1", "labels": {"row": "a"}}}))
    assert cluster.hyper_nodes.infos["h"].nodes == {"n0", "n1"}
    cluster.remove("Node", "", "n0")
    assert cluster.hyper_nodes.infos["h"].nodes == {"n1"}
    cluster.remove("HyperNode", "", "h")
    assert cluster.hyper_nodes.infos == {}


def test_valid_hyper_nodes_do_not_make_each_other_fail() -> None:
    """Many patterns, and large ones: each is used or reported at its own HyperNode, and the others are used."""
    nodes: dict[str, dict[str, str]] = {f"rack-{r}-node-{i}": {} for r in range(0, 10_000, 50) for i in range(2)}
    many = [hyper_node(f"r{r}", 1, pattern(f"^rack-{r}-node-[0-9]+$")) for r in range(10_000)]
    large = [hyper_node(f"large{i}", 1, pattern(f"({'[a-z0-9-]{0,90}' * 50}|x)-{i}$")) for i in range(3)]
    words = [hyper_node(f"words{i}", 1, pattern("|".join(f"x{i}y{j}z" for j in range(190)))) for i in range(16)]
    endless = hyper_node("endless", 1, pattern("\\pL{1,900}"), node("rack-0-node-0"))
    made = build([*many, *large, *words, endless], nodes)
    assert made.ready and list(made.problems) == ["endless"]
    assert "it compiles to more than 20000 instructions" in made.problems["endless"]
    assert made.infos["endless"].nodes == {"rack-0-node-0"}
    assert made.infos["r50"].nodes == {"rack-50-node-0", "rack-50-node-1"} and not made.infos["r51"].nodes
    assert made.infos["large1"].nodes == {name for name in nodes if name.endswith("-1")}
