"""Whether a node has capacity for the pod's requests, and how full it would be. Kubernetes: NodeResourcesFit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from volcano_py.api.core import Node
from volcano_py.api.dra import DeviceClass
from volcano_py.scheduler.framework.search.node_rules import LOCAL
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import AnyColumns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo, amounts
from volcano_py.scheduler.profiles.plugin_api.pod_info import FIRST, PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status
from volcano_py.scheduler.rules.allocation import LEAST_ALLOCATED, MOST_ALLOCATED, mean, means, ratio, ratios
from volcano_py.scheduler.rules.arrays import Bools, Ints
from volcano_py.scheduler.rules.score_line import LinePoint

_STRATEGIES = {"LeastAllocated": LEAST_ALLOCATED, "MostAllocated": MOST_ALLOCATED}


class ResourceWeight(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    weight: int = 1


class Shape(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    shape: list[LinePoint] = []


class Strategy(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: list[ResourceWeight] = []
    requested_to_capacity_ratio: Shape | None = None


class FitArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    scoring_strategy: Strategy = msgspec.field(default_factory=Strategy)
    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []


class NodeResourcesFit(PreFilter, Filter, Score):
    name = "NodeResourcesFit"
    scope = LOCAL

    def __init__(self, args: FitArguments, cluster: ProfileCluster) -> None:
        self._extended = cluster.extended
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = _STRATEGIES.get(args.scoring_strategy.type)
        """None: RequestedToCapacityRatio, by the line `_shape`."""
        ratio = args.scoring_strategy.requested_to_capacity_ratio
        self._shape = ratio.shape if ratio is not None else []
        self._weights = args.scoring_strategy.resources or [ResourceWeight(CPU), ResourceWeight(MEMORY)]

    @property
    def strategy(self) -> list[tuple[str, int]]:
        """The resources that count for scores, with their weights."""
        return [(r.name, r.weight) for r in self._weights]

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        reasons: list[str] = []
        hopeless = False
        if len(node.pods) + 1 > node.allocatable.get("pods", 0):
            reasons.append("Too many pods")
        for name, wanted in pod.requests.items():
            if self._is_ignored(name):
                continue
            capacity = node.allocatable.get(name, 0)
            if not capacity and self._extended.provides(name):
                continue  # devices of the node can provide it, see DynamicResources
            if wanted > capacity - node.requested.get(name, 0):
                reasons.append(f"Insufficient {name}")
                hopeless = hopeless or wanted > capacity
        if not reasons:
            return SUCCESS
        return Status(Code.UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE, tuple(reasons))

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        ok: Bools = nodes.pods + 1 <= nodes.allocatable("pods")
        for name, wanted in pod.requests.items():
            if not self._is_ignored(name):
                fits = wanted <= nodes.allocatable(name) - nodes.requested(name)
                ok &= fits | (nodes.allocatable(name) == 0) if self._extended.provides(name) else fits
        return ok

    def counted_requests(self, pod: PodInfo) -> dict[str, int]:
        """What a pod requests of the resources that a node must have free, with the pod itself."""
        counted = (n for n in pod.requests if not self._is_ignored(n) and not self._extended.provides(n))
        return {"pods": 1, **{name: pod.requests[name] for name in counted}}

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        uses: list[tuple[int, int, int]] = []
        for r in self._weights:
            own = pod.requests.get(r.name, 0)
            if not own and r.name not in FIRST:
                continue
            capacity, used = self._extended.capacity_and_use(node, r.name)
            if r.name == CPU:
                used, own = node.non_zero_cpu, pod.non_zero[0]
            elif r.name == MEMORY:
                used, own = node.non_zero_memory, pod.non_zero[1]
            uses.append((used + own, capacity, r.weight))
        return mean(self._strategy, uses) if self._strategy else ratio(uses, self._shape)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        uses: list[tuple[Ints, Ints, int]] = []
        for r in self._weights:
            if r.name == CPU:
                used = nodes.non_zero_cpu + pod.non_zero[0]
            elif r.name == MEMORY:
                used = nodes.non_zero_memory + pod.non_zero[1]
            elif r.name in FIRST or pod.requests.get(r.name):
                if self._extended.provides(r.name):
                    return None
                used = nodes.requested(r.name) + pod.requests.get(r.name, 0)
            else:
                continue
            uses.append((used, nodes.allocatable(r.name), r.weight))
        count = len(nodes)
        return means(self._strategy, uses, count) if self._strategy else ratios(uses, self._shape, count)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(PODS, ActionType.DELETE | ActionType.SCALE_DOWN, self._pod_helps),
            Interest(NODES, ActionType.ADD | ActionType.ALLOCATABLE, self._node_helps),
            Interest(NODES, ActionType.TAINT),
            Interest(frozenset((Kind.DEVICE_CLASS,)), ActionType.ADD | ActionType.OTHER, self._class_helps),
        )

    def _is_ignored(self, name: str) -> bool:
        group, slash, _ = name.partition("/")
        return bool(slash) and (name in self._ignored or group in self._ignored_groups)

    def _class_helps(self, pod: PodInfo, old: DeviceClass | None, new: DeviceClass | None) -> bool:
        """Whether a class provides a resource that the pod requests."""
        return new is not None and any(
            self._extended.class_of(name) == new.metadata.name for name in pod.requests if "/" in name
        )

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        if old is None:
            return False
        if new is None:
            return bool(old.node or old.pod.status.nominated_node_name)
        same = new.pod.metadata.uid == pod.pod.metadata.uid
        if not same and not new.node:
            return False
        wanted = old.requests if same else pod.requests
        return any(wanted.get(n, 0) and new.requests.get(n, 0) < amount for n, amount in old.requests.items())

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        if new is None:
            return False
        has = amounts(new.status.allocatable)
        if has.get("pods", 0) < 1 or any(a > has.get(n, 0) for n, a in pod.requests.items() if not self._is_ignored(n)):
            return False
        if old is None:
            return True
        had = amounts(old.status.allocatable)
        return any(has.get(n, 0) > had.get(n, 0) for n in ("pods", *pod.requests))
