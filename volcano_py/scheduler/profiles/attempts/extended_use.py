"""ExtendedUse: how many devices a DeviceClass offers on each node as an extended resource, and how many of them are
allocated, for scores. Kubernetes: calculateDRAResourceTotals of noderesources (feature gate DRAExtendedResource).

This differs from `ExtendedAmounts`, which limits what a node can allocate: scores count every device of the class, also
tainted ones, and a device that several claims share once.
"""

from __future__ import annotations

from volcano_py.api import dra
from volcano_py.scheduler.model.claims.device_pools import DeviceId
from volcano_py.scheduler.model.claims.device_selectors import DeviceSelectors, SelectorError
from volcano_py.scheduler.model.claims.extended_amounts import nodes_of
from volcano_py.scheduler.model.claims.resource_claims import ANY_NODE
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo


class ExtendedUse:
    """`model`: the model that session and profiles share."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._claims = model.claims.resource_claims
        self._devices: dict[str, dict[str, list[DeviceId]]] = {}
        """The devices of each node, by resource."""
        self._generations = (-1, -1, -1)
        self._seen = 0

    def class_of(self, resource: str) -> str | None:
        """The DeviceClass that provides a resource."""
        return self._claims.extended.classes.get(resource)

    def provides(self, resource: str) -> bool:
        """Whether a DeviceClass provides a resource, on nodes whose device plugin does not offer it."""
        return resource in self._claims.extended.classes

    def capacity_and_use(self, node: NodeInfo, resource: str) -> tuple[int, int]:
        """What a node has of a resource, and what its pods use of it: amounts of the Node object and of requests, or
        devices."""
        capacity = node.allocatable.get(resource, 0)
        if not capacity and self.provides(resource):
            return self.of(resource, node.name)
        return capacity, node.requested.get(resource, 0)

    def of(self, resource: str, node: str) -> tuple[int, int]:
        """The number of a node's devices that provide a resource, and of the allocated ones among them."""
        generations = (self._claims.pools.generation, self._model.nodes.generation, self._claims.extended.generation)
        if generations != self._generations:
            self._devices.clear()
            self._generations = generations
        if resource not in self._devices:
            self._devices[resource] = self._find(resource)
        here = self._devices[resource].get(node, ())
        used = self._claims.used()
        return len(here), sum(device in used for device in here)

    def touch(self, columns: Columns) -> None:
        """Record the nodes whose devices were allocated or released as changed: their scores may differ."""
        if not self._claims.extended.classes:
            return
        self._claims.used()  # updates the log
        log = self._claims.device_changes
        if self._seen == log.position:
            return
        changed = log.since(self._seen)
        self._seen = log.position
        everywhere = changed is None or ANY_NODE in changed
        for name in columns.index if everywhere else sorted(changed or ()):
            columns.touch(name)

    def _find(self, resource: str) -> dict[str, list[DeviceId]]:
        found: dict[str, list[DeviceId]] = {}
        device_class: dra.DeviceClass | None = self._claims.device_class(self.class_of(resource) or "")
        if device_class is None:
            return found
        selectors = self._model.keep(DeviceSelectors)
        for pool in self._claims.pools.pools().values():
            for device in pool.devices:
                try:
                    selected = selectors.accept(device_class.spec.selectors or (), device)
                except SelectorError:
                    return {}  # as in Kubernetes, the resource then has no score
                if selected:
                    for node in nodes_of(device, self._model.nodes):
                        found.setdefault(node, []).append(device.id)
        return found
