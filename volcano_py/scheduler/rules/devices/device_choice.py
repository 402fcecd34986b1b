"""DeviceChoice: the devices of a node that the ResourceClaims of a pod get. kube-scheduler: Filter of DynamicResources.

It reads the objects and the binds in flight (`model.claims.resource_claims`). A session adds its own decisions, see
`claim_book`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import msgspec
import numpy as np

from volcano_py.api import affinity, dra, quantity
from volcano_py.scheduler.model.claims.device_pools import Device, DeviceId, Pool
from volcano_py.scheduler.model.claims.device_selectors import DeviceSelectors, SelectorError
from volcano_py.scheduler.model.claims.extended_resources import ExtendedClaim
from volcano_py.scheduler.model.claims.resource_claims import ANY_NODE, ClaimDemand, PodClaim
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.arrays import Codes
from volcano_py.scheduler.rules.devices.device_allocator import Chosen, Inventory, allocate
from volcano_py.scheduler.rules.node_masks import node_mask

_MOST_CLASSES = 256


class DeviceRejection(IntEnum):
    """Why a node cannot serve claims; the numbers are those of `DynamicResources.reasons`."""

    NO_DEVICES = 1
    ELSEWHERE = 2
    ERROR = 3


class DeviceDecision(NamedTuple):
    """The devices that the claims of a pod get on a node."""

    claims: list[PodClaim]
    """The claims that this pod allocates."""
    chosen: list[list[Chosen]]
    """The devices of each of these claims."""


class _Known(NamedTuple):
    codes: Codes
    position: int
    """The position in the log of allocated and released devices."""
    generations: tuple[int, int]
    """The generations of devices and nodes."""


class DeviceChoice:
    """See the module."""

    free_again: Collection[str] = frozenset()
    """Claims whose devices count as free."""

    def __init__(self, cluster: Cluster, binding_conditions: bool = True) -> None:
        """`binding_conditions`: devices that are ready only some time after their allocation can be chosen."""
        self._cluster = cluster
        self._claims = cluster.claims.resource_claims
        self._selectors = cluster.keep(DeviceSelectors)
        self._taints = "DRADeviceTaints" in cluster.features
        self._later = binding_conditions and "DRADeviceBindingConditions" in cluster.features
        self._pools: dict[int, list[tuple[Pool, list[Device]]]] = {}
        self._pools_of: tuple[int, int] | None = None
        """The generations of devices and nodes for which `_pools` was built."""
        self._known: dict[int, _Known] = {}
        """Results by class of pods."""

    def used(self) -> Mapping[DeviceId, Mapping[str, dra.JsonMap]]:
        """The allocated devices, as in `ResourceClaims.used`."""
        return self._claims.used()

    def allocation(self, claim: PodClaim) -> dra.JsonMap | None:
        """The allocation of a claim, in the object or decided."""
        return self._claims.allocation(claim.key)

    def selects(self, demand: ClaimDemand) -> bool:
        """Whether a claim without an allocation, or one of its device classes, has selectors."""
        for claim in demand.claims:
            if claim.claim is None or claim.extended is not None or self.allocation(claim) is not None:
                continue
            for request in claim.claim.spec.devices.requests or ():
                for exact in [request.exactly] if request.exactly is not None else request.first_available or ():
                    of_class = self._claims.device_class(exact.device_class_name)
                    if exact.selectors or (of_class is not None and of_class.spec.selectors):
                        return True
        return False

    def decide(self, demand: ClaimDemand, node: int) -> DeviceDecision | DeviceRejection:
        """The devices that the claims of a pod get on a node, or why the node cannot serve them."""
        new: list[PodClaim] = []
        unallocated: list[dra.ResourceClaim] = []
        elsewhere = False
        for claim in demand.claims:
            allocation = self.allocation(claim)
            if claim.claim is None:
                return DeviceRejection.ERROR
            if allocation is None and claim.extended is not None:
                needed = self._needed(claim.claim, claim.extended, node)
                if needed is None:
                    return DeviceRejection.NO_DEVICES
                if needed.spec.devices.requests:
                    new.append(claim)
                    unallocated.append(needed)
            elif allocation is None:
                new.append(claim)
                unallocated.append(claim.claim)
            elif not self.reaches(allocation, node):
                elsewhere = True
        if not new:
            return DeviceRejection.ELSEWHERE if elsewhere else DeviceDecision([], [])
        try:
            chosen = allocate(unallocated, self._inventory(node))
        except SelectorError:
            return DeviceRejection.ERROR
        if chosen is None:
            return DeviceRejection.NO_DEVICES
        return DeviceRejection.ELSEWHERE if elsewhere else DeviceDecision(new, chosen)

    def code(self, demand: ClaimDemand, node: int) -> int:
        """0 if the node can serve the claims, else the DeviceRejection."""
        found = self.decide(demand, node)
        return 0 if isinstance(found, DeviceDecision) else int(found)

    def _needed(self, claim: dra.ResourceClaim, wanted: ExtendedClaim, node: int) -> dra.ResourceClaim | None:
        """The claim for the extended resources that the device plugins of a node do not offer. None: the claim exists
        already, with other requests."""
        offered = self._cluster.nodes.objects[node].status.allocatable or {}
        plugins = {r for r in set(wanted.resources.values()) if r in offered and quantity.parse(offered[r]) > 0}
        requests = [r for r in wanted.requests if wanted.resources[r.name] not in plugins]
        if not claim.metadata.uid:
            spec = dra.ResourceClaimSpec(devices=dra.DeviceClaim(requests=requests))
            return msgspec.structs.replace(claim, spec=spec) if plugins else claim
        return claim if [r.name for r in claim.spec.devices.requests or ()] == [r.name for r in requests] else None

    def codes(self, demand: ClaimDemand, class_id: int) -> Codes:
        """Why each node cannot serve the claims of a class of pods; 0 for nodes that can. Results are kept, and
        computed again for the nodes whose devices were allocated or released."""
        self._claims.used()  # updates the log
        log, generations = self._claims.device_changes, self._generations()
        known = self._known.get(class_id)
        changed = log.since(known.position) if known is not None and known.generations == generations else None
        if known is None or changed is None or ANY_NODE in changed:
            codes: Codes = np.zeros(len(self._cluster.nodes), dtype=np.int8)
            columns = list(range(len(codes)))
        else:
            codes, index = known.codes, self._cluster.nodes.index
            columns = [index[name] for name in changed if name in index]
        for node in columns:
            codes[node] = self.code(demand, node)
        if len(self._known) >= _MOST_CLASSES:
            self._known.clear()
        self._known[class_id] = _Known(codes, log.position, generations)
        return codes

    def _generations(self) -> tuple[int, int]:
        return self._claims.pools.generation, self._cluster.nodes.generation

    def reaches(self, allocation: dra.JsonMap, node: int) -> bool:
        """Whether a node can use what a claim was allocated."""
        selector = allocation.get("nodeSelector")
        if not selector:
            return True
        return bool(node_mask(self._cluster, msgspec.convert(selector, affinity.NodeSelector))[node])

    def _inventory(self, node: int) -> Inventory:
        generations = self._generations()
        if self._pools_of != generations:
            self._pools, self._pools_of = self._pools_by_node(), generations
        return Inventory(self._pools.get(node, ()), self.used(), self.free_again, self._accepts, self._taints)

    def _accepts(self, class_name: str, selectors: Sequence[dra.DeviceSelector], device: Device) -> bool:
        of_class = self._claims.device_class(class_name)
        if of_class is None:
            return False
        accept = self._selectors.accept
        return accept(of_class.spec.selectors or (), device) and accept(selectors, device)

    def _pools_by_node(self) -> dict[int, list[tuple[Pool, list[Device]]]]:
        """The pools that each node can use, with the devices that it can use; those with binding conditions last."""
        table = self._cluster.nodes
        found: dict[int, list[tuple[Pool, list[Device]]]] = {}
        for pool in sorted(self._claims.pools.pools().values(), key=_has_binding_conditions):
            here: dict[int, list[Device]] = {}
            for device in pool.devices:
                if device.spec.binding_conditions and not self._later:
                    continue
                for node in self._nodes_of(device):
                    here.setdefault(node, []).append(device)
            for node, devices in here.items():
                found.setdefault(node, []).append((pool, devices))
        assert all(node < len(table) for node in found)
        return found

    def _nodes_of(self, device: Device) -> list[int]:
        table = self._cluster.nodes
        if device.node is not None:
            node = table.index.get(device.node)
            return [] if node is None else [node]
        if device.everywhere:
            return list(range(len(table)))
        if device.selector is None:
            return []
        return np.flatnonzero(node_mask(self._cluster, device.selector)).tolist()


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.spec.binding_conditions for device in pool.devices)
