"""ExtendedAmounts: how much of an extended resource the devices of each node provide. Not in Volcano; kube-scheduler
does not count them, it leaves the resource out of the comparison with the node.

The amounts are part of what a node can allocate, so that admission of jobs, shares of queues and evictions count these
resources like any other. They are an upper limit, because other claims can have the same devices: the filter for claims
decides which devices are free. Devices that several nodes can use count on each of them.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api import dra, quantity
from volcano_py.scheduler.model.claims.device_capacity import consumption
from volcano_py.scheduler.model.claims.device_pools import Device, DevicePools
from volcano_py.scheduler.model.claims.device_selectors import DeviceSelectors, SelectorError
from volcano_py.scheduler.model.claims.extended_resources import ExtendedResources
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.nodes.node_terms import term_matches

_UNLIMITED = 256
"""The number that counts for a device which any number of claims can share."""


class ExtendedAmounts:
    """Amounts by node and resource, in the units of Resource. `selectors`: cached results of class selectors."""

    def __init__(
        self,
        objects: dict[str, dict[str, Any]],
        nodes: NodeTable,
        pools: DevicePools,
        resources: ExtendedResources,
        features: frozenset[str],
        selectors: DeviceSelectors,
    ) -> None:
        self._objects = objects
        self._nodes = nodes
        self._pools = pools
        self._resources = resources
        self._features = features
        self._selectors = selectors
        self._of: dict[str, dict[str, float]] = {}
        self._counted: tuple[int, int, int, int] | None = None
        self._reads_labels = False
        """Whether the nodes of some device are selected by labels."""

    def of(self, node: str) -> dict[str, float]:
        """The amounts on a node, as of the last update."""
        return self._of.get(node, {})

    def update(self) -> list[str]:
        """Count again after changes; returns the nodes whose amounts have changed."""
        resources = self._resources
        if not resources.wanted and not self._of:
            return []
        nodes = self._nodes.generation if self._reads_labels else self._nodes.names_generation
        now = (self._pools.generation, nodes, resources.generation, len(resources.wanted))
        if now == self._counted:
            return []
        self._counted = now
        before, self._of = self._of, {}
        for resource in sorted(resources.wanted & resources.classes.keys()):
            device_class: dra.DeviceClass = self._objects["DeviceClass"][resources.classes[resource]]
            self._count(resource, device_class)
        return [name for name in sorted(before.keys() | self._of.keys()) if before.get(name) != self._of.get(name)]

    def _count(self, resource: str, device_class: dra.DeviceClass) -> None:
        for pool in self._pools.pools().values():
            for device in pool.devices:
                claims = self._claims(device, device_class)
                if claims:
                    self._reads_labels |= device.node is None and not device.everywhere
                    for node in nodes_of(device, self._nodes):
                        here = self._of.setdefault(node, {})
                        here[resource] = here.get(resource, 0.0) + 1000.0 * claims

    def _claims(self, device: Device, device_class: dra.DeviceClass) -> int:
        """How many requests for one device of the class a device can serve at most."""
        spec = device.spec
        if spec.binding_conditions and "DRADeviceBindingConditions" not in self._features:
            return 0
        if "DRADeviceTaints" in self._features and any(t.effect in dra.REPELLING for t in device.taints):
            return 0
        try:
            if not self._selectors.accept(device_class.spec.selectors or (), device):
                return 0
        except SelectorError:
            return 0
        if not spec.allow_multiple_allocations:
            return 1
        consumed = consumption(device, dra.ExactDeviceRequest(device_class_name=device_class.metadata.name))
        if consumed is None:
            return 0
        capacity = {name: quantity.parse(c.value) for name, c in (spec.capacity or {}).items()}
        return min((int(capacity[name] // amount) for name, amount in consumed.items() if amount), default=_UNLIMITED)


def nodes_of(device: Device, nodes: NodeTable) -> list[str]:
    """The nodes whose pods can use a device."""
    if device.node is not None:
        return [device.node]
    if device.everywhere:
        return nodes.names
    terms = (device.selector.node_selector_terms if device.selector is not None else None) or ()
    return [node.metadata.name for node in nodes.objects if any(term_matches(t, node) for t in terms)]
