"""Zones of a pod's bound volumes. Kubernetes: VolumeZone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, ActionType, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unresolvable
from volcano_py.scheduler.profiles.plugins.volumes import volume_hints
from volcano_py.scheduler.rules.arrays import Bools
from volcano_py.scheduler.rules.volumes.zones import outside_zones

_REJECTED = unresolvable("node(s) had no available volume zone")


class VolumeZone(PreFilter, Filter):
    name = "VolumeZone"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.claims
        self._model = handle.cluster.model

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        if not pod.volume_claims:
            return None, SKIP
        demand = self._claims.demand(pod).volumes
        if demand is not None and demand.zone_problem:
            return None, unresolvable(demand.zone_problem)
        if demand is None or not demand.zones:
            return None, SKIP
        state.write(self.name, self._claims.kept(pod, self.name, lambda: outside_zones(self._model, demand.zones)))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return _REJECTED if state.read(self.name)[self._model.nodes.index[node.name]] else SUCCESS

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools:
        fits: Bools = ok & ~nodes.of_model(state.read(self.name))
        return fits

    def interests(self) -> Sequence[Interest]:
        changed = ActionType.ADD | ActionType.OTHER
        return (
            Interest(frozenset((Kind.STORAGE_CLASS,)), ActionType.ADD, volume_hints.waits_for_consumer),
            Interest(NODES, ActionType.ADD | ActionType.NODE_LABEL),
            Interest(frozenset((Kind.VOLUME_CLAIM,)), changed, volume_hints.own_claim),
            Interest(frozenset((Kind.VOLUME,)), changed, volume_hints.other_zones),
        )
