"""CardTypes: pods select types of GPU cards, and rare cards are kept free. Not in Kubernetes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec

from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import NODES, PODS, Action, Interest
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Filter, PreFilter, Score
from volcano_py.scheduler.profiles.handle import Handle
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status, unresolvable

REQUIRED = "volcano.sh/card-types"
"""The pod's annotation with the types that it accepts, separated by commas."""
PREFERRED = "volcano.sh/preferred-card-types"
"""The pod's annotation with the types that it prefers."""
_OTHER_TYPE = unresolvable("node(s) didn't have a card type that the pod accepts")
_RARE = unresolvable("node(s) had rare cards, which the pod doesn't name")
_GPU_NODE = unresolvable("node(s) had cards, which the pod doesn't request")


class Arguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    labels: dict[str, str] = msgspec.field(default_factory=lambda: {"nvidia.com/gpu": "nvidia.com/gpu.product"})
    """For each resource, the label of nodes that contains the type of their cards."""
    rare: list[str] = []
    """Types that are kept for pods that name them."""
    mode: Literal["Filter", "Score"] = "Filter"
    """How other pods are kept off nodes with rare cards: `Filter` always, `Score` while there are other nodes."""
    keep_gpu_nodes_free: bool = False
    """Whether pods that request no card are kept off nodes with cards, in the same mode."""


class CardTypes(PreFilter, Filter, Score):
    """Requires, prefers and protects card types."""

    name = "CardTypes"

    def __init__(self, arguments: Arguments, handle: Handle) -> None:
        self._args = arguments
        self._rare = frozenset(arguments.rare)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        protects = self._args.mode == "Filter" and (self._rare or self._args.keep_gpu_nodes_free)
        return None, SUCCESS if protects or _listed(pod, REQUIRED) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        accepted = _listed(pod, REQUIRED)
        if accepted and self.type_of(node) not in accepted:
            return _OTHER_TYPE
        return self._protection(pod, node) if self._args.mode == "Filter" else SUCCESS

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        avoids = self._args.mode == "Score" and (self._rare or self._args.keep_gpu_nodes_free)
        return SUCCESS if avoids or _listed(pod, PREFERRED) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """100 for a preferred type, 0 for a node that is kept free, 50 for others."""
        if self.type_of(node) in _listed(pod, PREFERRED):
            return MAX_SCORE
        keep_free = self._args.mode == "Score" and not self._protection(pod, node).ok
        return 0 if keep_free else MAX_SCORE // 2

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, Action.ADD | Action.NODE_LABEL | Action.ALLOCATABLE | Action.TAINT, self._node_helps),
            Interest(PODS, Action.OTHER, _own),
        )

    def type_of(self, node: NodeInfo) -> str:
        """The type of the node's cards; empty if it has none, or the type is unknown."""
        found = (node.labels.get(label, "") for r, label in self._args.labels.items() if node.allocatable.get(r))
        return next((t for t in found if t), "")

    def _protection(self, pod: PodInfo, node: NodeInfo) -> Status:
        """Why the node is kept free of the pod."""
        kind = self.type_of(node)
        if kind in self._rare and kind not in (*_listed(pod, REQUIRED), *_listed(pod, PREFERRED)):
            return _RARE
        has_cards = any(node.allocatable.get(r) for r in self._args.labels)
        requests_cards = any(pod.requests.get(r) for r in self._args.labels)
        return _GPU_NODE if self._args.keep_gpu_nodes_free and has_cards and not requests_cards else SUCCESS

    def _node_helps(self, pod: PodInfo, old: Any, new: Any) -> bool:
        return new is not None and self.filter(CycleState(), pod, NodeInfo(new)).ok


def _listed(pod: PodInfo, annotation: str) -> list[str]:
    text = (pod.pod.metadata.annotations or {}).get(annotation, "")
    return [t.strip() for t in text.split(",") if t.strip()]


def _own(pod: PodInfo, old: Any, new: Any) -> bool:
    return new is not None and new.key == pod.key
