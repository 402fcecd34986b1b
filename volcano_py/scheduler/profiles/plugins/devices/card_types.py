"""CardTypes: pods select types of GPU cards, and rare cards are kept free. Not in Kubernetes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import is_
from typing import Any, Literal

import msgspec

from volcano_py.api.core import Node
from volcano_py.scheduler.framework.search.node_rules import Codes
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter, Score
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unresolvable
from volcano_py.scheduler.rules import card_types as rule

_REJECTED = {code: unresolvable(text) for code, text in rule.TEXTS.items()}
_STATUSES = [_REJECTED[code] for code in rule.CardRejection]


class CardTypesArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    labels: dict[str, str] = msgspec.field(default_factory=lambda: {"nvidia.com/gpu": "nvidia.com/gpu.product"})
    """For each resource, the label of nodes that contains the type of their cards."""
    rare: list[str] = []
    """Types that are kept for pods that name them."""
    mode: Literal["Filter", "Score"] = "Filter"
    """How other pods are kept off nodes with rare cards: `Filter` always, `Score` while there are other nodes."""
    keep_gpu_nodes_free: bool = False
    """Whether pods that request no card are kept off nodes with cards, in the same mode."""


class ProfileCardTypes(PreFilter, Filter, Score):
    """Requires, prefers and protects card types."""

    name = "CardTypes"

    def __init__(self, arguments: CardTypesArguments, handle: Handle) -> None:
        self._labels = arguments.labels
        self._nodes: tuple[list[Node], rule.NodeCards] | None = None
        """The cards of these Node objects."""
        protection = rule.Protection(frozenset(arguments.rare), arguments.keep_gpu_nodes_free)
        filters = arguments.mode == "Filter" and bool(protection)
        self._by_filter = protection if filters else None
        self._by_score = protection if protection and not filters else None

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        return None, SUCCESS if self._by_filter or self._wishes(pod).accepted else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found = rule.rejection(self._wishes(pod), rule.cards(node.node, self._labels), self._by_filter)
        return SUCCESS if found is None else _REJECTED[found]

    def filter_codes(self, state: CycleState, pod: PodInfo, nodes: Columns) -> tuple[Codes, Sequence[Status]]:
        objects = [info.node for info in nodes.infos]
        if self._nodes is None or len(objects) != len(self._nodes[0]) or not all(map(is_, objects, self._nodes[0])):
            self._nodes = objects, rule.NodeCards(objects, self._labels)
        return self._nodes[1].codes(self._wishes(pod), self._by_filter), _STATUSES

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return SUCCESS if self._by_score or self._wishes(pod).preferred else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return rule.score(self._wishes(pod), rule.cards(node.node, self._labels), self._by_score)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(
                NODES,
                ActionType.ADD | ActionType.NODE_LABEL | ActionType.ALLOCATABLE | ActionType.TAINT,
                self._node_helps,
            ),
            Interest(PODS, ActionType.OTHER, _own),
        )

    def _wishes(self, pod: PodInfo) -> rule.Wishes:
        return rule.wishes(pod.pod.metadata.annotations or {}, pod.requests, self._labels)

    def _node_helps(self, pod: PodInfo, old: Any, new: Any) -> bool:
        return new is not None and self.filter(CycleState(), pod, NodeInfo(new)).ok


def _own(pod: PodInfo, old: Any, new: Any) -> bool:
    return new is not None and new.key == pod.key
