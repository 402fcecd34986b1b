"""Devices for a pod's ResourceClaims. Kubernetes: DynamicResources.

Reserve allocates devices to the claims in the model's ledger; PreBind marks these allocations to be written before the
binding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from volcano_py.api import dra
from volcano_py.api.duration import parse_duration
from volcano_py.api.gang import CompositePodGroup
from volcano_py.api.kinds import RESOURCECLAIM
from volcano_py.scheduler.model.claims.device_selectors import NO_CEL, can_select
from volcano_py.scheduler.model.claims.resource_claims import ClaimDemand
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.groups.claims import for_group, shared_with
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, ActionType, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Filter,
    PodGroupPostFilter,
    PostFilter,
    PostFilterResult,
    PreEnqueue,
    PreFilter,
    Score,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.rejected_group import PodGroupPostFilterResult, RejectedGroup
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.devices.claim_steps import ClaimSteps
from volcano_py.scheduler.rules.arrays import Bools, Ints
from volcano_py.scheduler.rules.devices.alternatives import has_alternatives, rank_of
from volcano_py.scheduler.rules.devices.device_allocation import allocation_of
from volcano_py.scheduler.rules.devices.device_choice import DeviceDecision, DeviceRejection
from volcano_py.scheduler.rules.devices.device_steps import device_steps
from volcano_py.scheduler.rules.normalizing import share_of_highest

_NO_DEVICES = unresolvable("cannot allocate all claims")
_ELSEWHERE = unresolvable("resourceclaim not available on the node")
_SELECTOR_FAILS = error("a selector of a claim or of its device class fails")
_NOTHING_TO_FREE = unschedulable("no new claims to deallocate")
_FREED = PostFilterResult(unschedulable("deallocation of ResourceClaim completed"))
_STILL_NOT = unschedulable("still not schedulable")
_KIND = ObjectKind(RESOURCECLAIM.api_version, RESOURCECLAIM.kind)


class DynamicResourcesArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    filter_timeout: str | None = None
    """Accepted: the search for devices is limited by steps, not by time."""
    binding_timeout: str = "600s"
    """How long a bind waits for the binding conditions of its devices."""


class DynamicResources(PreEnqueue, PreFilter, Filter, PostFilter, PodGroupPostFilter, Score, ClaimSteps):
    name = "DynamicResources"
    skips_all = True

    def __init__(self, args: DynamicResourcesArguments, handle: Handle) -> None:
        self._handle = handle
        self._timeout = parse_duration(args.binding_timeout)
        self._claims = handle.claims
        self._model = handle.cluster.model
        self._ledger = handle.cluster.model.claims.resource_claims

    def pre_enqueue(self, pod: PodInfo) -> Status:
        demand = self._claims.demand(pod).devices if pod.claims else None
        return unresolvable(demand.unusable) if demand is not None and demand.unusable else SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        demand = self._claims.demand(pod).devices if pod.claims else None
        if demand is None or not demand.claims:
            return None, SKIP
        if demand.problem:
            return None, unresolvable(demand.problem)
        for claim in demand.claims:
            written = claim.claim is not None and claim.claim.status.allocation is not None
            assumed = () if written else self._ledger.assumed.get(claim.key, {}).values()
            group = shared_with(self._handle, pod, claim.key) if assumed else None
            uid = group.metadata.uid if group is not None else ""
            together = self._handle.tried_together
            if any(s.pod_uid not in together and (not uid or s.group_uid != uid) for s in assumed):
                return None, unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if not can_select() and self._claims.devices.selects(demand):
            return None, error(NO_CEL)
        state.write(self.name, demand)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found = self._claims.devices.decide(state.read(self.name), self._model.nodes.index[node.name])
        if isinstance(found, DeviceDecision):
            return SUCCESS
        return {DeviceRejection.NO_DEVICES: _NO_DEVICES, DeviceRejection.ELSEWHERE: _ELSEWHERE}.get(
            found, _SELECTOR_FAILS
        )

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools | None:
        class_id = self._model.tasks[pod.key].spec_class.id
        codes = nodes.of_model(self._claims.devices.codes(state.read(self.name), class_id))
        return None if (codes[ok] == DeviceRejection.ERROR).any() else ok & (codes == 0)

    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult:
        demand: ClaimDemand | None = state.read(self.name)
        if demand is None:
            return PostFilterResult(_NOTHING_TO_FREE if self._handle.release.states_no_claims else unschedulable())
        nodes = [self._model.nodes.index[name] for name, status in rejected.items() if status.plugin == self.name]
        for claim in demand.claims:
            allocation = self._claims.devices.allocation(claim)
            others = self._ledger.reserved_for(claim.key) - {pod.pod.metadata.uid}
            if claim.claim is None or allocation is None or others:
                continue
            if not all(self._claims.devices.reaches(allocation, node) for node in nodes):
                self._handle.patch(_KIND, claim.key, _deallocated(claim.claim), pod, status=True)
                return _FREED
        return PostFilterResult(_STILL_NOT if self._handle.release.states_no_claims else unschedulable())

    def pod_group_post_filter(self, group: RejectedGroup) -> PodGroupPostFilterResult:
        if isinstance(group.root, CompositePodGroup) or group.root.spec.topology_key:
            return PodGroupPostFilterResult(unschedulable())
        if not group.tried:
            # Kubernetes reads what PreFilter has stored for a member, and no member was tried.
            return PodGroupPostFilterResult(error("not found"))
        return PodGroupPostFilterResult(unschedulable("deallocation and deletion of ResourceClaims completed"))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        demand: ClaimDemand | None = state.read(self.name)
        return SUCCESS if demand is not None and has_alternatives(demand) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return rank_of(self._claims.devices.decide(state.read(self.name), self._model.nodes.index[node.name]))

    def normalize_columns(self, scores: Ints) -> Ints:
        return share_of_highest(scores, reverse=False).astype(np.int64)

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        demand: ClaimDemand | None = state.read(self.name)
        if demand is None:
            return SUCCESS
        found = self._claims.devices.decide(demand, self._model.nodes.index[node])
        if not isinstance(found, DeviceDecision):
            return _NO_DEVICES
        chosen = {
            claim.key: allocation_of(claim.claim, devices, node, self._ledger.device_class)
            for claim, devices in zip(found.claims, found.chosen, strict=True)
            if claim.claim is not None
        }
        task = self._model.tasks[pod.key]
        known = {claim.key: self._ledger.allocation(claim.key) for claim in demand.claims}
        steps = device_steps(self._model, task, demand, chosen, self._timeout)
        steps = [for_group(self._handle, pod, step, known) for step in steps]
        self._claims.reserve(pod, self.name, node, steps)
        return SUCCESS

    def interests(self) -> Sequence[Interest]:
        changed = ActionType.ADD | ActionType.OTHER
        devices = frozenset((Kind.DEVICE_CLASS, Kind.RESOURCE_SLICE, Kind.DEVICE_TAINT))
        return (
            Interest(NODES, ActionType.ADD | ActionType.NODE_LABEL | ActionType.TAINT),
            Interest(frozenset((Kind.RESOURCE_CLAIM,)), changed | ActionType.DELETE, self._claim_helps),
            Interest(frozenset((Kind.UNSCHEDULED_POD,)), ActionType.CLAIMS_MADE, self._made),
            Interest(devices, changed),
            Interest(frozenset((Kind.DEVICE_TAINT,)), ActionType.DELETE),
            # kube-scheduler waits five minutes for devices that a failed binding had reserved.
            Interest(frozenset((Kind.ASSIGNED_POD,)), ActionType.DELETE, _had_claims),
        )

    def _claim_helps(self, pod: PodInfo, old: dra.ResourceClaim | None, new: dra.ResourceClaim | None) -> bool:
        """Whether a claim released its devices, or is the pod's own and has changed in more than its requests."""
        demand = self._claims.demand(pod).devices
        if demand is None or demand.unusable:
            return False
        if old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None):
            return True
        if new is None or all(claim.key != new.metadata.key for claim in demand.claims):
            return False
        return old is None or old.status != new.status

    def _made(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        """Whether all claims of the pod exist now."""
        if new is None or new.pod.metadata.uid != pod.pod.metadata.uid:
            return False
        demand = self._claims.demand(new).devices
        return demand is not None and not demand.unusable


def _had_claims(pod: PodInfo, old: PodInfo | None, _: object) -> bool:
    return old is not None and old.claims


def _deallocated(claim: dra.ResourceClaim) -> Mapping[str, Any]:
    """The patch that deallocates a claim, unless the claim has changed since."""
    metadata = {"resourceVersion": claim.metadata.resource_version}
    return {"metadata": metadata, "status": {"allocation": None, "reservedFor": None, "devices": None}}
