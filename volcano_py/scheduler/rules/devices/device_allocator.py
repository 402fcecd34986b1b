"""The search for devices: the devices of a node that serve all requests of some claims. kube-scheduler: the structured
allocator.

Depth first over claims, requests and devices in their order; the first solution is used. Devices of one request are
chosen in the order of the pools, so that no combination is tried twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from volcano_py.api import dra, quantity
from volcano_py.api.core import Toleration
from volcano_py.scheduler.model.claims.device_capacity import consumption
from volcano_py.scheduler.model.claims.device_pools import Device, DeviceId, Pool, PoolId
from volcano_py.scheduler.model.claims.device_selectors import attribute_of, value_of

MAX_STEPS = 100_000
"""The number of devices that are tried for one pod on one node before the search ends."""


class Chosen(NamedTuple):
    """A device for a request."""

    request: str
    """`request` or `request/subrequest`."""
    device: Device
    admin: bool
    consumed: dict[str, Fraction] | None
    """The consumed capacity of a device that several claims share."""
    tolerations: tuple[Toleration, ...]


class Inventory(NamedTuple):
    """The devices and their state on one node."""

    pools: Sequence[tuple[Pool, Sequence[Device]]]
    """The pools with the devices that the node can use."""
    used: Mapping[DeviceId, Mapping[str, dra.JsonMap]]
    """Allocated devices, with the results of the claims that have them."""
    free_again: Collection[str]
    """Claims whose devices count as free."""
    accepts: Callable[[str, Sequence[dra.DeviceSelector], Device], bool]
    """Whether the selectors of a class and a request accept a device. Raises SelectorError."""
    taints: bool = True
    """Whether taints keep devices from claims that do not tolerate them."""


def allocate(claims: Sequence[dra.ResourceClaim], inventory: Inventory) -> list[list[Chosen]] | None:
    """The devices of each claim, or None. Raises SelectorError."""
    search = _Search(claims, inventory)
    return search.chosen if search.claim(0) else None


class _Search:
    """One search. Each method tries to serve the remaining requests from a position on, and undoes its choices if it
    fails."""

    def __init__(self, claims: Sequence[dra.ResourceClaim], inventory: Inventory) -> None:
        self._claims = claims
        self._inventory = inventory
        self.chosen: list[list[Chosen]] = [[] for _ in claims]
        self._steps = 0
        self._taken: set[DeviceId] = set()
        self._shared: dict[tuple[DeviceId, str], Fraction] = defaultdict(Fraction)
        self._counters: dict[tuple[PoolId, str, str], Fraction] = {}

    def claim(self, number: int) -> bool:
        return number == len(self._claims) or self._request(number, 0)

    def _request(self, number: int, position: int) -> bool:
        requests = self._claims[number].spec.devices.requests or []
        if position == len(requests):
            return len(self.chosen[number]) <= dra.MAX_DEVICES and self.claim(number + 1)
        request = requests[position]
        if request.exactly is not None:
            return self._exact(number, position, request.name, request.exactly)
        return any(
            self._exact(number, position, f"{request.name}/{sub.name}", sub) for sub in request.first_available or ()
        )

    def _exact(self, number: int, position: int, name: str, request: dra.ExactDeviceRequest) -> bool:
        candidates = self._candidates(request)
        if request.allocation_mode != "All":
            return self._choose(number, position, name, request, candidates, 0, request.count or 1)
        if not candidates or not all(pool.complete for pool, _ in self._inventory.pools):
            return False
        return self._choose(number, position, name, request, candidates, 0, len(candidates))

    def _candidates(self, request: dra.ExactDeviceRequest) -> list[tuple[Pool, Device]]:
        accepts = self._inventory.accepts
        return [
            (pool, device)
            for pool, devices in self._inventory.pools
            for device in devices
            if accepts(request.device_class_name, request.selectors or (), device)
        ]

    def _choose(
        self,
        number: int,
        position: int,
        name: str,
        request: dra.ExactDeviceRequest,
        candidates: list[tuple[Pool, Device]],
        first: int,
        missing: int,
    ) -> bool:
        """Choose `missing` more devices for a request, from the candidate at a position on."""
        if not missing:
            return self._request(number, position + 1)
        for i in range(first, len(candidates) - missing + 1):
            pool, device = candidates[i]
            self._steps += 1
            if self._steps > MAX_STEPS:
                return False
            undo = self._take(number, name, request, pool, device)
            if undo is None:
                continue
            if self._choose(number, position, name, request, candidates, i + 1, missing - 1):
                return True
            undo()
        return False

    def _take(
        self, number: int, name: str, request: dra.ExactDeviceRequest, pool: Pool, device: Device
    ) -> Callable[[], None] | None:
        """Choose a device; returns the function that undoes the choice, or None if the device cannot be chosen."""
        admin = bool(request.admin_access)
        tolerations = tuple(request.tolerations or ())
        if self._inventory.taints and not all(_tolerated(t, tolerations) for t in device.taints):
            return None
        consumed: dict[str, Fraction] | None = None
        if device.spec.allow_multiple_allocations and not admin:
            consumed = consumption(device, request)
            if consumed is None or not self._has_capacity(device, consumed):
                return None
        elif not admin and (device.id in self._taken or self._is_used(device.id)):
            return None
        if not self._constraints_hold(number, name, device):
            return None
        drawn = _drawn(device) if not admin and device.spec.consumes_counters else {}
        if not self._has_counters(pool, drawn):
            return None
        chosen = Chosen(name, device, admin, consumed, tolerations)
        self.chosen[number].append(chosen)
        self._count(pool, device, admin, consumed, drawn, +1)

        def undo() -> None:
            self.chosen[number].pop()
            self._count(pool, device, admin, consumed, drawn, -1)

        return undo

    def _count(
        self,
        pool: Pool,
        device: Device,
        admin: bool,
        consumed: dict[str, Fraction] | None,
        drawn: dict[tuple[str, str], Fraction],
        sign: int,
    ) -> None:
        if consumed is not None:
            for dimension, amount in consumed.items():
                self._shared[device.id, dimension] += sign * amount
        elif not admin:
            (self._taken.add if sign > 0 else self._taken.discard)(device.id)
        for (group, counter), amount in drawn.items():
            self._counters[pool.id, group, counter] -= sign * amount

    def _is_used(self, device: DeviceId) -> bool:
        return any(self._holds(key) for key in self._inventory.used.get(device, ()))

    def _holds(self, key: str) -> bool:
        return key.partition("#")[0] not in self._inventory.free_again

    def _has_capacity(self, device: Device, consumed: dict[str, Fraction]) -> bool:
        """Whether the capacity that other claims leave of a shared device is sufficient."""
        others = [r for key, r in self._inventory.used.get(device.id, {}).items() if self._holds(key)]
        for dimension, amount in consumed.items():
            have = quantity.parse((device.spec.capacity or {})[dimension].value)
            amounts = (quantity.parse((r.get("consumedCapacity") or {}).get(dimension, 0)) for r in others)
            gone = sum(amounts, Fraction())
            if gone + self._shared[device.id, dimension] + amount > have:
                return False
        return True

    def _has_counters(self, pool: Pool, drawn: dict[tuple[str, str], Fraction]) -> bool:
        """Whether the counters that partitions share have enough left."""
        return all(self._left(pool, *counter) >= amount for counter, amount in drawn.items())

    def _left(self, pool: Pool, group: str, counter: str) -> Fraction:
        key = (pool.id, group, counter)
        if key not in self._counters:
            gone = sum(
                (_drawn(d).get((group, counter), Fraction()) for d in pool.devices if self._is_used(d.id)), Fraction()
            )
            self._counters[key] = pool.counters.get((group, counter), Fraction()) - gone
        return self._counters[key]

    def _constraints_hold(self, number: int, name: str, device: Device) -> bool:
        for constraint in self._claims[number].spec.devices.constraints or ():
            if not _is_concerned(constraint, name):
                continue
            others = [c.device for c in self.chosen[number] if _is_concerned(constraint, c.request)]
            if constraint.match_attribute is not None:
                mine = attribute_of(device, constraint.match_attribute)
                if mine is None or (others and attribute_of(others[0], constraint.match_attribute) != mine):
                    return False
            if constraint.distinct_attribute is not None:
                mine = attribute_of(device, constraint.distinct_attribute)
                known = [attribute_of(o, constraint.distinct_attribute) for o in others]
                if mine is None or any(o is not None and value_of(o) == value_of(mine) for o in known):
                    return False
        return True


def _is_concerned(constraint: dra.DeviceConstraint, request: str) -> bool:
    """Whether a constraint applies to a request; it may name the request with or without its subrequest."""
    named = constraint.requests
    return not named or request in named or request.partition("/")[0] in named


def _tolerated(taint: dra.DeviceTaint, tolerations: Sequence[Toleration]) -> bool:
    if taint.effect not in dra.REPELLING:
        return True
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.operator == "Exists" or (bool(t.key) and t.value == taint.value))
        for t in tolerations
    )


def _drawn(device: Device) -> dict[tuple[str, str], Fraction]:
    """What a device consumes of its pool's counters."""
    return {
        (consumption.counter_set, name): quantity.parse(counter.value)
        for consumption in device.spec.consumes_counters or ()
        for name, counter in (consumption.counters or {}).items()
    }
