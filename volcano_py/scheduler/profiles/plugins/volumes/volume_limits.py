"""The number of volumes of a CSI driver that a node accepts. Kubernetes: NodeVolumeLimits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import ActionType, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unschedulable
from volcano_py.scheduler.profiles.plugins.volumes import volume_hints
from volcano_py.scheduler.rules.arrays import Bools
from volcano_py.scheduler.rules.volumes.limits import exceeds

_REJECTED = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits(PreFilter, Filter):
    name = "NodeVolumeLimits"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.claims
        self._model = handle.cluster.model
        self._storage = handle.cluster.model.claims.storage

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        if not pod.volume_claims:
            return None, SKIP
        demand = self._claims.demand(pod).volumes
        if demand is None or not demand.handles:
            return None, SKIP
        state.write(self.name, demand)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        demand: VolumeDemand = state.read(self.name)
        drivers = {driver for driver, _, _ in demand.handles}
        found = {driver: self._storage.limit(node.name, driver) for driver in drivers}
        limits = {driver: limit for driver, limit in found.items() if limit is not None}
        if not limits:
            return SUCCESS
        attached = self._storage.handles_attached_to(node.name)
        for key in node.with_volumes:
            task = self._model.tasks.get(key)
            volumes = task.claims.volumes if task is not None else None
            attached.update((driver, handle) for driver, handle, _ in (volumes.handles if volumes is not None else ()))
        used = Counter(driver for driver, _ in attached)
        free = {driver: limit - used[driver] for driver, limit in limits.items()}
        return _REJECTED if exceeds(demand.handles, attached, free) else SUCCESS

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools:
        demand: VolumeDemand = state.read(self.name)
        drivers = {driver for driver, _, _ in demand.handles}
        fits = ok.copy()
        for name, limit in self._storage.limited_nodes(drivers).items():
            i = nodes.index.get(name, -1)
            if i >= 0 and ok[i] and self._most(nodes.infos[i]) + len(demand.handles) > limit:
                fits[i] = self.filter(state, pod, nodes.infos[i]).ok
        return fits

    def _most(self, node: NodeInfo) -> int:
        """An upper bound of the number of volumes on the node."""
        attachments = len(self._storage.attached.get(node.name, ()))
        return attachments + sum(len(pod.volume_claims) for pod in node.with_volumes.values())

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(frozenset((Kind.CSI_NODE,)), ActionType.ADD | ActionType.OTHER, volume_hints.higher_limit),
            Interest(frozenset((Kind.ASSIGNED_POD,)), ActionType.DELETE, volume_hints.had_volumes),
            Interest(frozenset((Kind.VOLUME_CLAIM,)), ActionType.ADD, volume_hints.own_claim),
            Interest(frozenset((Kind.ATTACHMENT,)), ActionType.DELETE, volume_hints.has_volumes),
        )
