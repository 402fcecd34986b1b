"""Volumes that only one pod may use at a time. Kubernetes: VolumeRestrictions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from volcano_py.scheduler.model.claims.volume_demand import is_disk
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, ActionType, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.volumes import volume_hints
from volcano_py.scheduler.rules.arrays import Bools
from volcano_py.scheduler.rules.volumes.disks import shares_disk

_ONE_POD = unschedulable("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode")
_DISK = unschedulable("node(s) had no available disk")


class _InUse:
    """The number of other pods on nodes that use a pod's claims with the access mode ReadWriteOncePod."""

    def __init__(self, exclusive: frozenset[str], count: int) -> None:
        self.exclusive = exclusive
        self.count = count

    def move(self, pod: PodInfo, sign: int) -> None:
        self.count += sign * sum(f"{pod.namespace}/{name}" in self.exclusive for name, _ in pod.volume_claims)

    def clone(self) -> _InUse:
        return _InUse(self.exclusive, self.count)


class VolumeRestrictions(PreFilter, Filter):
    name = "VolumeRestrictions"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.claims
        self._cluster = handle.cluster

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        if not pod.pod.spec.volumes:
            return None, SKIP
        storage = self._cluster.model.claims.storage
        for name, ephemeral in pod.volume_claims:
            if not ephemeral and storage.claim(f"{pod.namespace}/{name}") is None:
                return None, unresolvable(f'persistentvolumeclaim "{name}" not found')
        demand = self._claims.demand(pod).volumes
        exclusive = frozenset(demand.exclusive if demand is not None else ())
        users = (storage.users.get(claim, set()) - {pod.key} for claim in exclusive)
        found = _InUse(exclusive, sum(any(self._cluster.is_placed(key) for key in keys) for keys in users))
        if not found.count and not any(is_disk(v) for v in pod.pod.spec.volumes):
            return None, SKIP
        state.write(self.name, found)
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        state.read(self.name).move(added, +1)

    def remove_pod(self, state: CycleState, pod: PodInfo, placed: PodInfo, node: NodeInfo) -> None:
        state.read(self.name).move(placed, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if any(
            shares_disk(pod.pod.spec.volumes, other.pod.spec.volumes)
            for other in node.pods.values()
            if other.pod.spec.volumes
        ):
            return _DISK
        return _ONE_POD if state.read(self.name).count > 0 else SUCCESS

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools:
        if state.read(self.name).count > 0:
            return np.zeros_like(ok)
        fits = ok.copy()
        for i in np.flatnonzero(ok).tolist():
            fits[i] = self.filter(state, pod, nodes.infos[i]).ok
        return fits

    def interests(self) -> Sequence[Interest]:
        placed = frozenset((Kind.ASSIGNED_POD,))
        claims = frozenset((Kind.VOLUME_CLAIM,))
        return (
            Interest(placed, ActionType.DELETE, _frees),
            Interest(NODES, ActionType.ADD),
            Interest(claims, ActionType.ADD | ActionType.OTHER, volume_hints.own_claim),
        )


def _frees(pod: PodInfo, old: PodInfo | None, new: object) -> bool:
    if old is None or old.namespace != pod.namespace:
        return False
    return shares_disk(pod.pod.spec.volumes, old.pod.spec.volumes) or volume_hints.shares_claim(pod, old, new)
