"""Which types of cards a pod accepts and prefers, and which nodes are kept free for pods that name their cards. Not in
Volcano and not in Kubernetes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from volcano_py.api import quantity
from volcano_py.api.core import Node
from volcano_py.scheduler.rules.arrays import Codes, Ints

REQUIRED = "volcano.sh/card-types"
"""The pod's annotation with the types that it accepts, separated by commas."""
PREFERRED = "volcano.sh/preferred-card-types"
"""The pod's annotation with the types that it prefers."""
ANNOTATIONS = (REQUIRED, PREFERRED)


class CardRejection(IntEnum):
    """The codes of the filter, in the order of its checks; 0 accepts."""

    OTHER_TYPE = 1
    RARE = 2
    GPU_NODE = 3


TEXTS = {
    CardRejection.OTHER_TYPE: "node(s) didn't have a card type that the pod accepts",
    CardRejection.RARE: "node(s) had rare cards, which the pod doesn't name",
    CardRejection.GPU_NODE: "node(s) had cards, which the pod doesn't request",
}


class Wishes(NamedTuple):
    """What a class of pods requests."""

    accepted: Collection[str]
    """Empty: all types."""
    preferred: Collection[str]
    requests_cards: bool


class Protection(NamedTuple):
    """For which pods nodes with cards are kept free."""

    rare: Collection[str]
    """Types that are kept for pods that name them."""
    all_cards: bool
    """Whether nodes with cards are kept for pods that request cards."""

    def __bool__(self) -> bool:
        return bool(self.rare or self.all_cards)


class CardsOfNode(NamedTuple):
    """The cards of a node."""

    type: str
    """Empty: none, or unknown."""
    any: bool
    """Whether the node has cards of a resource that counts."""


def wishes(annotations: Mapping[str, str], requested: Iterable[str], labels: Mapping[str, str]) -> Wishes:
    """What a pod requests. `requested`: the resources; `labels`: those of cards, see `cards`."""
    return Wishes(
        _listed(annotations.get(REQUIRED, "")),
        _listed(annotations.get(PREFERRED, "")),
        any(resource in labels for resource in requested),
    )


def cards(node: Node, labels: Mapping[str, str]) -> CardsOfNode:
    """The cards of a node. `labels`: for each resource of cards, the label of nodes with their type."""
    has = node.status.allocatable or {}
    held = [resource for resource in labels if resource in has and quantity.value(has[resource])]
    of_node = node.metadata.labels or {}
    types = (of_node.get(labels[resource], "") for resource in held)
    return CardsOfNode(next((t for t in types if t), ""), bool(held))


def kept_free(pod: Wishes, node: CardsOfNode, protection: Protection) -> CardRejection | None:
    """Why a node is kept free of the pod."""
    if node.type in protection.rare and node.type not in pod.accepted and node.type not in pod.preferred:
        return CardRejection.RARE
    return CardRejection.GPU_NODE if protection.all_cards and node.any and not pod.requests_cards else None


def rejection(pod: Wishes, node: CardsOfNode, protection: Protection | None) -> CardRejection | None:
    """Why a node rejects the pod. `protection`: None: no node is kept free by the filter."""
    if pod.accepted and node.type not in pod.accepted:
        return CardRejection.OTHER_TYPE
    return kept_free(pod, node, protection) if protection else None


def score(pod: Wishes, node: CardsOfNode, protection: Protection | None) -> int:
    """100 for a preferred type, 0 for a node that is kept free, 50 for others. `protection`: None: no node is kept free
    by the score."""
    if node.type in pod.preferred:
        return 100
    return 0 if protection and kept_free(pod, node, protection) else 50


class NodeCards:
    """The cards of many nodes: each distinct sort once, and the sort of each node."""

    def __init__(self, nodes: Iterable[Node], labels: Mapping[str, str]) -> None:
        numbers: dict[CardsOfNode, int] = {}
        self._of_node = np.array([numbers.setdefault(cards(n, labels), len(numbers)) for n in nodes], dtype=np.intp)
        self._sorts = list(numbers)

    def codes(self, pod: Wishes, protection: Protection | None) -> Codes:
        """`rejection` of every node."""
        found = np.array([rejection(pod, sort, protection) or 0 for sort in self._sorts], dtype=np.int8)
        codes: Codes = found[self._of_node]
        return codes

    def scores(self, pod: Wishes, protection: Protection | None) -> Ints:
        """`score` of every node."""
        found = np.array([score(pod, sort, protection) for sort in self._sorts], dtype=np.int64)
        scores: Ints = found[self._of_node]
        return scores


def _listed(text: str) -> list[str]:
    return [t.strip() for t in text.split(",") if t.strip()]
