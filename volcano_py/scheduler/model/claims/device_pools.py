"""DevicePools: the devices that ResourceSlices publish, by pool. kube-scheduler: GatherPools of the allocator.

A pool is built again when one of its slices has changed. Only the slices of its newest generation count.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from volcano_py.api import dra, quantity
from volcano_py.api.affinity import NodeSelector

DeviceId = tuple[str, str, str]
"""Driver, pool, device."""
PoolId = tuple[str, str]
_encoder = msgspec.msgpack.Encoder()


class Device(NamedTuple):
    """One published device."""

    id: DeviceId
    spec: dra.Device
    taints: tuple[dra.DeviceTaint, ...]
    """Taints of the device itself and of DeviceTaintRules."""
    node: str | None
    """The node that has the device; None: see `selector` and `everywhere`."""
    selector: NodeSelector | None
    everywhere: bool
    content: bytes
    """Equal for devices that no selector can distinguish."""


class Pool(NamedTuple):
    """The devices of a driver that are managed together."""

    id: PoolId
    devices: tuple[Device, ...]
    complete: bool
    """Whether all slices of the pool exist."""
    counters: dict[tuple[str, str], Fraction]
    """The counters that partitions of the pool's devices share, by counter set and counter."""


class DevicePools:
    """Lookups over `objects` (by kind and key)."""

    def __init__(self, objects: dict[str, dict[str, Any]]) -> None:
        self._objects = objects
        self._pools: dict[PoolId, Pool] = {}
        self._slices: dict[PoolId, dict[str, dra.ResourceSlice]] = {}
        self._pool_of: dict[str, PoolId] = {}
        self._changed: set[PoolId] = set()
        self.generation = 0
        """Incremented when a device may have changed."""

    def slice_changed(self, name: str) -> None:
        """A ResourceSlice was added, changed or removed."""
        self.generation += 1
        old = self._pool_of.pop(name, None)
        if old is not None:
            del self._slices[old][name]
            self._changed.add(old)
        found: dra.ResourceSlice | None = self._objects.get("ResourceSlice", {}).get(name)
        if found is not None:
            pool = (found.spec.driver, found.spec.pool.name)
            self._pool_of[name] = pool
            self._slices.setdefault(pool, {})[name] = found
            self._changed.add(pool)

    def taints_changed(self) -> None:
        """A DeviceTaintRule was added, changed or removed."""
        self.generation += 1
        self._changed.update(self._slices)

    def pools(self) -> dict[PoolId, Pool]:
        """All pools, in the order of driver and name."""
        if self._changed:
            rules = list(self._objects.get("DeviceTaintRule", {}).values())
            for id in self._changed:
                slices = self._slices.get(id)
                if slices:
                    self._pools[id] = _pool(id, slices, rules)
                else:
                    self._pools.pop(id, None)
            self._changed.clear()
            self._pools = dict(sorted(self._pools.items()))
        return self._pools

    def device(self, id: DeviceId) -> Device | None:
        """A device by its name."""
        pool = self.pools().get(id[:2])
        return next((d for d in pool.devices if d.id == id), None) if pool is not None else None


def _pool(id: PoolId, slices: dict[str, dra.ResourceSlice], rules: list[dra.DeviceTaintRule]) -> Pool:
    newest = max(s.spec.pool.generation for s in slices.values())
    current = [s for _, s in sorted(slices.items()) if s.spec.pool.generation == newest]
    counters = {
        (group.name, name): quantity.parse(counter.value)
        for s in current
        for group in s.spec.shared_counters or ()
        for name, counter in (group.counters or {}).items()
    }
    devices = tuple(_device(id, s, device, rules) for s in current for device in s.spec.devices or ())
    return Pool(id, devices, len(current) >= current[0].spec.pool.resource_slice_count, counters)


def _device(pool: PoolId, of: dra.ResourceSlice, device: dra.Device, rules: list[dra.DeviceTaintRule]) -> Device:
    place: dra.ResourceSliceSpec | dra.Device = device if of.spec.per_device_node_selection else of.spec
    content = _encoder.encode((pool[0], device.attributes, device.capacity, device.allow_multiple_allocations))
    return Device(
        (*pool, device.name),
        device,
        (*(device.taints or ()), *(r.spec.taint for r in rules if _concerns(r, pool, device))),
        place.node_name or None,
        place.node_selector,
        bool(place.all_nodes),
        content,
    )


def _concerns(rule: dra.DeviceTaintRule, pool: PoolId, device: dra.Device) -> bool:
    """Whether a rule taints a device; one without a selector taints all."""
    wanted = rule.spec.device_selector
    if wanted is None:
        return True
    pairs = ((wanted.driver, pool[0]), (wanted.pool, pool[1]), (wanted.device, device.name))
    return all(value is None or value == have for value, have in pairs)
