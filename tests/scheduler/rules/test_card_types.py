"""Card types: which cards a node has, and which codes and scores follow."""

from __future__ import annotations

import pytest

from volcano_py.api.core import Node, NodeStatus
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.rules.card_types import (
    CardRejection,
    CardsOfNode,
    NodeCards,
    Protection,
    Wishes,
    cards,
    wishes,
)

LABELS = {"nvidia.com/gpu": "product", "huawei.com/Ascend": "chip"}
RARE = Protection({"H100"}, False)
ALL = Protection((), True)


def node(amounts: dict[str, str], **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name="n", labels=labels), status=NodeStatus(allocatable=amounts))


@pytest.mark.parametrize(
    ("amounts", "labels", "expected"),
    [
        ({"nvidia.com/gpu": "8"}, {"product": "H100"}, CardsOfNode("H100", True)),
        ({"nvidia.com/gpu": "0"}, {"product": "H100"}, CardsOfNode("", False)),
        ({"cpu": "8"}, {"product": "H100"}, CardsOfNode("", False)),
        ({"nvidia.com/gpu": "8"}, {}, CardsOfNode("", True)),
        ({"huawei.com/Ascend": "8"}, {"product": "H100", "chip": "910B"}, CardsOfNode("910B", True)),
        ({"nvidia.com/gpu": "8", "huawei.com/Ascend": "8"}, {"chip": "910B"}, CardsOfNode("910B", True)),
    ],
)
def test_the_cards_of_a_node(amounts: dict[str, str], labels: dict[str, str], expected: CardsOfNode) -> None:
    assert cards(node(amounts, **labels), LABELS) == expected


def test_the_wishes_of_a_pod() -> None:
    annotations = {"volcano.sh/card-types": "A100, V100,", "volcano.sh/preferred-card-types": " H100 "}
    assert wishes(annotations, ["cpu", "nvidia.com/gpu"], LABELS) == Wishes(["A100", "V100"], ["H100"], True)
    assert wishes({}, ["cpu"], LABELS) == Wishes([], [], False)


NODES = [
    node({"nvidia.com/gpu": "8"}, product="H100"),
    node({"nvidia.com/gpu": "8"}, product="A100"),
    node({"nvidia.com/gpu": "8"}, product="H100"),
    node({"cpu": "8"}),
]
OTHER, RARE_CODE, GPU = (int(code) for code in CardRejection)


@pytest.mark.parametrize(
    ("pod", "protection", "codes", "scores"),
    [
        (Wishes([], [], True), None, [0, 0, 0, 0], [50, 50, 50, 50]),
        (Wishes(["A100"], [], True), None, [OTHER, 0, OTHER, OTHER], [50, 50, 50, 50]),
        (Wishes([], ["A100"], True), None, [0, 0, 0, 0], [50, 100, 50, 50]),
        (Wishes([], [], True), RARE, [RARE_CODE, 0, RARE_CODE, 0], [0, 50, 0, 50]),
        (Wishes(["H100"], [], True), RARE, [0, OTHER, 0, OTHER], [50, 50, 50, 50]),
        (Wishes([], ["H100"], True), RARE, [0, 0, 0, 0], [100, 50, 100, 50]),
        (Wishes([], [], False), ALL, [GPU, GPU, GPU, 0], [0, 0, 0, 50]),
        (Wishes([], [], True), ALL, [0, 0, 0, 0], [50, 50, 50, 50]),
    ],
)
def test_codes_and_scores(pod: Wishes, protection: Protection | None, codes: list[int], scores: list[int]) -> None:
    nodes = NodeCards(NODES, LABELS)
    assert nodes.codes(pod, protection).tolist() == codes
    assert nodes.scores(pod, protection).tolist() == scores


def test_a_cluster_without_nodes() -> None:
    nodes = NodeCards([], LABELS)
    assert not len(nodes.codes(Wishes([], [], True), RARE)) and not len(nodes.scores(Wishes([], [], True), RARE))
