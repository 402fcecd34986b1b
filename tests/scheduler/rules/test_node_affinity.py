"""The rule about node selectors and node affinity: what pods require and prefer to nodes."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api.affinity import NodeAffinity
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.node_affinity import (
    matches,
    matching_nodes,
    named_nodes,
    preference,
    preferences,
    preferred_of,
    required_of,
)

NODES = [
    from_manifest(Node, {"metadata": {"name": name, "labels": labels}})
    for name, labels in (
        ("n0", {"disk": "ssd", "size": "10"}),
        ("n1", {"disk": "hdd", "size": "5"}),
        ("n2", {"disk": ""}),
        ("n3", None),
        ("n4", {"disk": "ssd", "size": "large"}),
    )
]


def expressions(*wanted: tuple[str, str, list[str]]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, values in wanted]}


def name(op: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": op, "values": list(values)}]}


NEITHER = {"matchFields": name("In", "n0")["matchFields"] + name("In", "n1")["matchFields"]}
TERMS = {
    "In": ([expressions(("disk", "In", ["ssd", "x"]))], "10001"),
    "In, an empty value": ([expressions(("disk", "In", [""]))], "00100"),
    "NotIn matches nodes without the label": ([expressions(("disk", "NotIn", ["ssd"]))], "01110"),
    "Exists": ([expressions(("disk", "Exists", []))], "11101"),
    "DoesNotExist": ([expressions(("disk", "DoesNotExist", []))], "00010"),
    "Gt: whole numbers only": ([expressions(("size", "Gt", ["4"]))], "11000"),
    "Gt: greater, not equal": ([expressions(("size", "Gt", ["5"]))], "10000"),
    "Lt": ([expressions(("size", "Lt", ["10"]))], "01000"),
    "Gt without a number": ([expressions(("size", "Gt", ["x"]))], "00000"),
    "all expressions of a term": ([expressions(("disk", "In", ["ssd"]), ("size", "Gt", ["1"]))], "10000"),
    "one of the terms": ([expressions(("disk", "In", ["hdd"])), expressions(("disk", "DoesNotExist", []))], "01010"),
    "a name": ([name("In", "n3")], "00010"),
    "no name": ([name("NotIn", "n3")], "11101"),
    "two names are no requirement of the API": ([name("In", "n3", "n4")], "00000"),
    "a name that does not exist": ([name("In", "n9")], "00000"),
    "a name and an expression": ([name("In", "n1") | expressions(("disk", "In", ["ssd"]))], "00000"),
    "a term without requirements matches nothing": ([{}], "00000"),
    "no terms": ([], "00000"),
    "none": (None, "11111"),
}


def affinity(required: Any = None, preferred: Any = None) -> NodeAffinity:
    return from_manifest(
        NodeAffinity,
        {
            "requiredDuringSchedulingIgnoredDuringExecution": None
            if required is None
            else {"nodeSelectorTerms": required},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
    )


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    found = Cluster()
    for node in NODES:
        found.upsert("Node", node)
    return found


@pytest.mark.parametrize(("terms", "expected"), TERMS.values(), ids=TERMS)
def test_required_terms(terms: Any, expected: str, cluster: Cluster) -> None:
    check(cluster, {}, terms, expected)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(None, "11111"), ({"disk": "ssd"}, "10001"), ({"disk": ""}, "00100"), ({"disk": "ssd", "size": "10"}, "10000")],
)
def test_node_selector(labels: dict[str, str] | None, expected: str, cluster: Cluster) -> None:
    check(cluster, labels, None, expected)


def test_node_selector_and_required_terms_must_both_match(cluster: Cluster) -> None:
    check(cluster, {"disk": "ssd"}, [name("In", "n0"), name("In", "n1")], "10000")


def check(cluster: Cluster, labels: dict[str, str] | None, terms: Any, expected: str) -> None:
    required = required_of(affinity(terms))
    assert "".join(str(int(matches(labels, required, node))) for node in NODES) == expected
    assert "".join(str(int(ok)) for ok in matching_nodes(cluster, labels, required)) == expected


def test_preferred_terms_add_their_weights(cluster: Cluster) -> None:
    terms = preferred_of(
        affinity(
            preferred=[
                {"weight": 7, "preference": expressions(("disk", "In", ["ssd"]))},
                {"weight": 20, "preference": expressions(("size", "Exists", []))},
                {"weight": 1, "preference": {}},
            ]
        )
    )
    assert [preference(terms, node) for node in NODES] == [27, 20, 0, 0, 27]
    assert preferences(cluster, terms).tolist() == [27, 20, 0, 0, 27]
    assert preferences(cluster, preferred_of(None)).tolist() == [0] * 5


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (None, None),
        ([], None),
        ([name("In", "n0")], {"n0"}),
        ([name("In", "n0"), name("In", "n1")], {"n0", "n1"}),
        ([name("In", "n0"), expressions(("disk", "Exists", []))], None),
        ([name("NotIn", "n0")], None),
        ([NEITHER], set()),
        (
            [NEITHER, name("In", "n2")],
            {"n2"},
        ),
    ],
    ids=("none", "no terms", "one", "two", "a term without", "NotIn", "a conflict", "a conflict in one of the terms"),
)
def test_names(terms: Any, expected: set[str] | None) -> None:
    assert named_nodes(required_of(affinity(terms))) == expected


def test_masks_follow_the_nodes(cluster: Cluster) -> None:
    required = required_of(affinity([expressions(("disk", "In", ["ssd"]))]))
    own = Cluster()
    for node in NODES[:2]:
        own.upsert("Node", node)
    assert matching_nodes(own, None, required).tolist() == [True, False]
    own.upsert("Node", from_manifest(Node, {"metadata": {"name": "n1", "labels": {"disk": "ssd"}}}))
    assert matching_nodes(own, None, required).tolist() == [True, True]
