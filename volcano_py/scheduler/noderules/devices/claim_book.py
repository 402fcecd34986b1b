"""ClaimBook: the devices that the ResourceClaims of a session get. kube-scheduler: Filter, Reserve and Unreserve of
DynamicResources.

It starts with the objects and the binds in flight, and follows the placements and evictions of the session.
"""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.api import dra
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.device_pools import DeviceId
from volcano_py.scheduler.model.claims.resource_claims import ClaimDemand, PodClaim
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.devices.device_allocation import allocation_of
from volcano_py.scheduler.rules.devices.device_choice import DeviceChoice, DeviceDecision, DeviceRejection
from volcano_py.scheduler.rules.kept_codes import EVERYWHERE


class ClaimBook(DeviceChoice):
    """See the module. `log`: as in `kept_codes`."""

    free_again: set[str]
    """Claims whose pods all leave: their devices are released later."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.cluster, session.deviations.device_binding_conditions)
        self._session = session
        self._used: dict[DeviceId, Mapping[str, dra.JsonMap]] | None = None
        self._left: dict[str, set[str]] = {}
        self.free_again = set()
        self.pending: dict[str, tuple[dra.JsonMap, int]] = {}
        """The allocations of this session: by claim, with the slot of the task."""
        self.decisions: dict[int, dict[str, dra.JsonMap]] = {}
        """The allocations of a task's claims, by its slot and the claim."""
        self.log: list[int] = []

    def allocation(self, claim: PodClaim) -> dra.JsonMap | None:
        pending = self.pending.get(claim.key)
        return pending[0] if pending is not None else super().allocation(claim)

    def used(self) -> dict[DeviceId, Mapping[str, dra.JsonMap]]:
        if self._used is None:
            self._used = dict(super().used())
        return self._used

    # ---- following the session --------------------------------------------------------------------------------

    def place(self, task: Task, node: int) -> str | None:
        """Allocate the claims of a task that gets a node, or whose eviction is undone; returns why the node cannot
        serve them."""
        demand = task.claims.devices
        assert demand is not None
        status = self._session.status(task)
        if status not in (st.ALLOCATED, st.PIPELINED):
            self._return(task, demand)
            return None
        waits = status == st.PIPELINED
        if waits and not self._session.deviations.pipelined_claims:
            # Volcano has no node here, so that nothing can be reserved.
            return "no node is known for unallocated claims" if any(self._is_new(c) for c in demand.claims) else None
        decision = self.decide(demand, node)
        if isinstance(decision, DeviceRejection):
            return "claims cannot be allocated on the node"
        if not waits and self._is_leaving(decision):
            return "devices of claims are still in use"
        self._reserve(task, demand, decision, node)
        return None

    def displace(self, task: Task, node: int) -> None:
        """Undo `place`."""
        demand = task.claims.devices
        assert demand is not None
        if self.decisions.pop(task.slot, None) is not None:
            for key, (allocation, slot) in list(self.pending.items()):
                if slot == task.slot:
                    self._give_back(key, allocation, node)
        elif self._session.status(task) == st.RELEASING and self._session.deviations.pipelined_claims:
            self._leave(task, demand)

    def _is_new(self, claim: PodClaim) -> bool:
        return self.allocation(claim) is None

    def _is_leaving(self, decision: DeviceDecision) -> bool:
        """Whether a chosen device is still in use."""
        used = self._used or {}
        devices = (c.device.id for chosen in decision.chosen for c in chosen if c.consumed is None)
        return bool(self.free_again) and any(used.get(id) for id in devices)

    def _reserve(self, task: Task, demand: ClaimDemand, decision: DeviceDecision, node: int) -> None:
        name = self._session.table.names[node]
        for claim, chosen in zip(decision.claims, decision.chosen, strict=True):
            assert claim.claim is not None
            allocation = allocation_of(claim.claim, chosen, name, self._claims.device_class)
            self.pending[claim.key] = (allocation, task.slot)
            self._count(claim.key, allocation, True)
            local = all(c.device.node is not None for c in chosen) and not claim.shared
            self.log.append(node if local else EVERYWHERE)
        found = {claim.key: self.allocation(claim) for claim in demand.claims}
        self.decisions[task.slot] = {key: a for key, a in found.items() if a is not None}

    def _give_back(self, key: str, allocation: dra.JsonMap, node: int) -> None:
        heir = next((slot for slot, claims in self.decisions.items() if key in claims), None)
        if heir is not None:
            # Another task of the session shares the claim.
            self.pending[key] = (allocation, heir)
            return
        del self.pending[key]
        self._count(key, allocation, False)
        self.log.append(EVERYWHERE)

    def _count(self, key: str, allocation: dra.JsonMap, given: bool) -> None:
        used = self.used()
        for result in dra.results(allocation):
            if result.get("adminAccess"):
                continue
            device, entry = dra.device_id(result), f"{key}#{result.get('shareID') or ''}"
            here = dict(used.get(device, {}))
            if given:
                here[entry] = result
            else:
                here.pop(entry, None)
            used[device] = here

    def _leave(self, task: Task, demand: ClaimDemand) -> None:
        """On an eviction: claims without any other pod are released later."""
        for claim in demand.claims:
            left = self._left.setdefault(claim.key, set())
            left.add(task.uid)
            if self._claims.reserved_for(claim.key) <= left:
                self.free_again.add(claim.key)
                self.log.append(EVERYWHERE)

    def _return(self, task: Task, demand: ClaimDemand) -> None:
        for claim in demand.claims:
            self._left.get(claim.key, set()).discard(task.uid)
            if claim.key in self.free_again:
                self.free_again.discard(claim.key)
                self.log.append(EVERYWHERE)
