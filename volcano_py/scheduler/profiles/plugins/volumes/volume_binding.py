"""Volumes of a pod that are bound, can be bound, or can be provisioned for a node. Kubernetes: VolumeBinding.

Reserve assigns volumes and nodes to the pod's claims. PreBind marks a list of steps that are carried out before the
binding; the last of them wait until each claim has its volume.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, ActionType, Hint, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter, Score
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, error, unresolvable
from volcano_py.scheduler.profiles.plugins.devices.claim_steps import ClaimSteps
from volcano_py.scheduler.profiles.plugins.volumes import volume_hints
from volcano_py.scheduler.rules.arrays import Bools, Codes
from volcano_py.scheduler.rules.score_line import LinePoint
from volcano_py.scheduler.rules.volumes.binding import TEXTS, bound_codes, provision_codes
from volcano_py.scheduler.rules.volumes.steps import binding_steps
from volcano_py.scheduler.rules.volumes.storage_capacity import EMPTIEST_FIRST, GATE, score_of_node
from volcano_py.scheduler.rules.volumes.volume_book import VolumeDecision, VolumeRejection

_CHANGED = ActionType.ADD | ActionType.OTHER


class VolumeBindingArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    bind_timeout_seconds: Annotated[int, Meta(ge=0)] = 600
    """How long a binding waits until its volumes are provisioned and bound."""
    shape: list[LinePoint] = []
    """With the feature gate StorageCapacityScoring: the score at a utilization of the storage capacity."""


class _Looked(NamedTuple):
    """The results of PreFilter, by column of the model's nodes; numbers as in `TEXTS`."""

    demand: VolumeDemand
    bound: Codes
    waiting: Codes | None
    """None: each node must be evaluated, because volumes exist that could match."""


class VolumeBinding(PreFilter, Filter, Score, ClaimSteps):
    name = "VolumeBinding"
    skips_all = True

    def __init__(self, args: VolumeBindingArguments, handle: Handle) -> None:
        self._timeout = float(args.bind_timeout_seconds)
        self._claims = handle.claims
        self._model = handle.cluster.model
        self._shape = (args.shape or EMPTIEST_FIRST) if GATE in handle.features else None

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        if not pod.volume_claims:
            return None, SKIP
        demand = self._claims.demand(pod).volumes
        if demand is None:
            return None, SKIP
        if demand.problem:
            return None, unresolvable(demand.problem)
        bound, waiting = self._claims.kept(pod, self.name, lambda: self._codes(demand))
        state.write(self.name, _Looked(demand, bound, None if demand.matched else waiting))
        return None, SUCCESS

    def _codes(self, demand: VolumeDemand) -> tuple[Codes, Codes]:
        return bound_codes(self._model, demand), provision_codes(self._claims.volumes, demand)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        looked: _Looked = state.read(self.name)
        column = self._model.nodes.index[node.name]
        codes = (int(looked.bound[column]), self._waiting(looked, column))
        if VolumeRejection.NO_CLASS in codes:
            return error(next(p.error for p in looked.demand.provisions if p.error))
        reasons = [TEXTS[code - 1] for code in sorted(codes) if code]
        return unresolvable(*reasons) if reasons else SUCCESS

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools | None:
        looked: _Looked = state.read(self.name)
        fits: Bools = ok & (nodes.of_model(looked.bound) == 0)
        codes: Codes
        if looked.waiting is not None:
            codes = nodes.of_model(looked.waiting)
        else:
            codes = np.zeros(len(nodes), dtype=np.int8)
            for i in np.flatnonzero(fits).tolist():
                codes[i] = self._waiting(looked, nodes.model_column(i))
        if (codes[ok] == VolumeRejection.NO_CLASS).any():
            return None
        fits &= codes == 0
        return fits

    def _waiting(self, looked: _Looked, column: int) -> int:
        if looked.waiting is not None:
            return int(looked.waiting[column])
        return self._claims.volumes.code(looked.demand.waiting, looked.demand.provisions, column)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        looked: _Looked | None = state.read(self.name)
        return SUCCESS if self._shape is not None and looked is not None and looked.demand.waiting else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        assert self._shape is not None, "pre_score skips the plugin otherwise"
        looked: _Looked = state.read(self.name)
        storage = self._model.claims.storage
        return score_of_node(
            self._shape, self._claims.volumes, storage, looked.demand, self._model.nodes.index[node.name]
        )

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        looked: _Looked | None = state.read(self.name)
        if looked is None or not looked.demand.waiting:
            return SUCCESS
        column = self._model.nodes.index[node]
        found = self._claims.volumes.decide(looked.demand.waiting, looked.demand.provisions, column)
        if not isinstance(found, VolumeDecision):
            return unresolvable(TEXTS[found - 1])
        steps = binding_steps(found, pod.namespace, node, self._timeout)
        self._claims.reserve(pod, self.name, node, steps)
        return SUCCESS

    def interests(self) -> Sequence[Interest]:
        def about(kind: Kind, action: ActionType, hint: Hint | None = None) -> Interest:
            return Interest(frozenset((kind,)), action, hint)

        return (
            about(Kind.STORAGE_CLASS, _CHANGED, volume_hints.other_topologies),
            about(Kind.VOLUME_CLAIM, _CHANGED, volume_hints.own_claim),
            about(Kind.VOLUME, _CHANGED),
            Interest(NODES, ActionType.ADD | ActionType.NODE_LABEL),
            about(Kind.CSI_NODE, _CHANGED, volume_hints.other_migration),
            about(Kind.CSI_DRIVER, ActionType.OTHER, volume_hints.capacity_unchecked),
            about(Kind.STORAGE_CAPACITY, _CHANGED, volume_hints.more_capacity),
            # kube-scheduler waits five minutes for volumes that a failed binding had reserved.
            about(Kind.ASSIGNED_POD, ActionType.DELETE, volume_hints.had_volumes),
        )
