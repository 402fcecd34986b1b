"""The rule about cordoned nodes and taints: nodes and tolerations to results."""

from __future__ import annotations

import pytest

from volcano_py.api.core import Node, NodeSpec, Taint, Toleration
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.rules.taints import NodeTaints, cordoned, disliked, repels

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")
DOWN = Taint(key="down", effect="NoExecute")
SLOW = Taint(key="slow", effect="PreferNoSchedule")
OLD = Taint(key="old", value="5", effect="PreferNoSchedule")
EVERYTHING = Toleration(operator="Exists")
CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule")
NODES = [
    Node(metadata=ObjectMeta(name=name), spec=NodeSpec(taints=taints, unschedulable=unschedulable))
    for name, taints, unschedulable in (
        ("plain", None, False),
        ("cordoned", None, True),
        ("gpu", [GPU], False),
        ("down", [DOWN, SLOW], False),
        ("old", [OLD, SLOW], False),
        ("gpu and cordoned", [GPU, SLOW], True),
        ("gpu again", [GPU], False),
    )
]
TABLE = {
    # tolerations: cordoned, repels, disliked; for each of the nodes
    "none": ([], "0100010", "0011011", "0001210"),
    "everything": ([EVERYTHING], "0000000", "0000000", "0000000"),
    "the cordon": ([CORDON], "0000000", "0011011", "0001210"),
    "the cordon, for NoExecute only": (
        [Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoExecute")],
        *("0100010", "0011011", "0001210"),
    ),
    "a key with its value": ([Toleration(key="gpu", value="a100")], "0100010", "0001000", "0001210"),
    "a key with another value": ([Toleration(key="gpu", value="h100")], "0100010", "0011011", "0001210"),
    "all hard taints, one after the other": (
        [Toleration(key="gpu", operator="Exists"), Toleration(key="down", operator="Exists", effect="NoExecute")],
        *("0100010", "0000000", "0001210"),
    ),
    "a preference": ([Toleration(key="slow", operator="Exists")], "0100010", "0011011", "0000100"),
    "a preference, but for NoSchedule only": (
        [Toleration(key="slow", operator="Exists", effect="NoSchedule")],
        *("0100010", "0011011", "0001210"),
    ),
    "lower than a number": ([Toleration(key="old", operator="Lt", value="6")], "0100010", "0011011", "0001110"),
    "lower than a number that is too small": (
        [Toleration(key="old", operator="Lt", value="5")],
        *("0100010", "0011011", "0001210"),
    ),
}


@pytest.mark.parametrize(("tolerations", "keeps_off", "repelled", "fewer"), TABLE.values(), ids=TABLE)
def test_tolerations(tolerations: list[Toleration], keeps_off: str, repelled: str, fewer: str) -> None:
    for rule, expected in ((cordoned, keeps_off), (repels, repelled), (disliked, fewer)):
        assert "".join(str(int(rule(node, tolerations))) for node in NODES) == expected
    all_nodes = NodeTaints(NODES)
    for found, expected in (
        (all_nodes.cordoned(tolerations), keeps_off),
        (all_nodes.repel(tolerations), repelled),
        (all_nodes.disliked(tolerations), fewer),
    ):
        assert "".join(str(int(value)) for value in found) == expected


@pytest.mark.parametrize(
    ("nodes", "any_cordoned", "any_hard", "any_soft"),
    [
        (NODES[:0], False, False, False),
        (NODES[:1], False, False, False),
        (NODES[:2], True, False, False),
        (NODES[2:3], False, True, False),
        (NODES[3:4], False, True, True),
        (NODES[4:5], False, False, True),
    ],
    ids=("no nodes", "plain", "cordoned", "NoSchedule", "NoExecute and PreferNoSchedule", "PreferNoSchedule"),
)
def test_what_nodes_have(nodes: list[Node], any_cordoned: bool, any_hard: bool, any_soft: bool) -> None:
    found = NodeTaints(nodes)
    assert (found.any_cordoned, found.any_hard, found.any_soft) == (any_cordoned, any_hard, any_soft)
    assert [len(found.cordoned([])), len(found.repel([])), len(found.disliked([]))] == [len(nodes)] * 3
