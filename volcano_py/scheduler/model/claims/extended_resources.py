"""ExtendedResources: resources that DeviceClasses provide, and the claims for the pods that request them.
kube-scheduler: extended resources of DynamicResources (feature gate DRAExtendedResource).

A DeviceClass provides `spec.extendedResourceName`, and `deviceclass.resource.kubernetes.io/<its name>`. On a node whose
device plugin offers the resource a pod uses that. On other nodes the scheduler creates one ResourceClaim for the pod;
the kubelet finds the devices of each container in `status.extendedResourceClaimStatus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from msgspec import convert

from volcano_py.api import core, dra, quantity
from volcano_py.scheduler.model.claims.device_selectors import can_select

PREFIX = "deviceclass.resource.kubernetes.io/"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Marks the claims that the scheduler creates."""
_LONGEST_BASE = 58
"""The characters of a generated name before its suffix, as in Kubernetes."""


class ExtendedClaim(NamedTuple):
    """What the claim of a pod contains."""

    requests: tuple[dra.DeviceRequest, ...]
    resources: Mapping[str, str]
    """The resource of each request."""
    mappings: tuple[dra.JsonMap, ...]
    """The requests of each container: `containerName`, `resourceName`, `requestName`."""

    def part(self, requests: Iterable[str]) -> dict[str, Any]:
        """Some of the requests, with their mappings."""
        names = set(requests)
        return {
            "requests": [_as_json(r) for r in self.requests if r.name in names],
            "mappings": [m for m in self.mappings if m["requestName"] in names],
        }


class ExtendedResources:
    """Lookups over `objects` (by kind and key)."""

    def __init__(self, objects: dict[str, dict[str, Any]]) -> None:
        self._objects = objects
        self._classes: dict[str, str] | None = None
        self.on = False
        """Whether these resources are served."""
        self.generation = 0
        """Incremented when another class provides a resource, or none."""
        self.wanted: set[str] = set()
        """The provided resources that some pod or PodGroup has requested."""

    def switch(self, on: bool) -> None:
        """Serve these resources or not."""
        if on != self.on:
            self.on = on
            self.changed()

    def changed(self) -> None:
        """A DeviceClass was added, changed or removed."""
        self._classes = None
        self.generation += 1

    @property
    def classes(self) -> Mapping[str, str]:
        """The DeviceClass of each resource. Of several classes the newest provides it, then the first by name."""
        if self._classes is None:
            found: dict[str, str] = {}
            usable = [c for c in self._objects.get("DeviceClass", {}).values() if can_select() or not c.spec.selectors]
            usable.sort(key=lambda c: c.metadata.name, reverse=True)
            usable.sort(key=lambda c: c.metadata.creation_timestamp or "")
            for device_class in usable if self.on else ():
                found[PREFIX + device_class.metadata.name] = device_class.metadata.name
            for device_class in usable if self.on else ():
                if device_class.spec.extended_resource_name:
                    found[device_class.spec.extended_resource_name] = device_class.metadata.name
            self._classes = found
        return self._classes

    def of_pod(self, pod: core.Pod) -> list[str]:
        """The provided resources that a pod requests."""
        classes = self.classes
        if not classes:
            return []
        containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
        found = {
            name
            for container in containers
            for name, amount in (container.resources.requests or {}).items()
            if name in classes and _count(amount)
        }
        self.want(found)
        return sorted(found)

    def want(self, resources: Iterable[str]) -> None:
        """Count the devices of resources on nodes from now on, if a DeviceClass provides them."""
        self.wanted.update(name for name in resources if name in self.classes)

    def claim_of(self, pod: core.Pod, resources: Iterable[str]) -> ExtendedClaim:
        """The claim of a pod for these resources."""
        requests: list[dra.DeviceRequest] = []
        of_request: dict[str, str] = {}
        mappings: list[dra.JsonMap] = []
        for resource in resources:
            made, mapped = _requests(pod, resource, self.classes[resource])
            requests += made
            of_request.update((request.name, resource) for request in made)
            mappings += mapped
        return ExtendedClaim(tuple(sorted(requests, key=lambda r: r.name)), of_request, tuple(mappings))


def claim_key(pod: core.Pod) -> str:
    """Namespace and name of the claim that the scheduler creates for a pod. The same in each attempt, so that a write
    with an unknown outcome can be repeated."""
    metadata = pod.metadata
    suffix = uuid5(NAMESPACE_OID, metadata.uid).hex[:5]
    return f"{metadata.namespace}/{f'{metadata.name}-extended-resources-'[:_LONGEST_BASE]}{suffix}"


def claim_to_create(pod: core.Pod, wanted: ExtendedClaim) -> dra.ResourceClaim:
    """The claim of a pod, before it exists."""
    key, meta = claim_key(pod), pod.metadata
    manifest = claim_manifest(key, meta.name, meta.uid, [_as_json(r) for r in wanted.requests])
    return convert(manifest, dra.ResourceClaim)


def claim_manifest(key: str, pod: str, uid: str, requests: list[dra.JsonMap]) -> dra.JsonMap:
    """The claim of a pod for the API server. It is deleted with the pod, which is its owner."""
    namespace, _, name = key.partition("/")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": {ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}


def _requests(pod: core.Pod, resource: str, device_class: str) -> tuple[list[dra.DeviceRequest], list[dra.JsonMap]]:
    """The requests for one resource. Init containers run before the others and use the devices of those that start
    later; of what they need in addition, the largest request serves all of them."""
    inits = list(pod.spec.init_containers or ())
    containers = [*inits, *(pod.spec.containers or ())]
    short = [i for i, c in enumerate(inits) if c.restart_policy != "Always"]
    lasting: dict[int, dra.DeviceRequest] = {}
    mappings: list[dra.JsonMap] = []
    for i in range(len(containers)):
        if i not in short:
            request, mapped = _request(i, containers[i], resource, device_class, ())
            mappings += mapped
            if request is not None:
                lasting[i] = request
    largest: dra.DeviceRequest | None = None
    replaced: set[str] = set()
    of_short: list[dra.JsonMap] = []
    for i in short:
        later = [lasting[k] for k in sorted(lasting) if k >= i]
        request, mapped = _request(i, containers[i], resource, device_class, later)
        of_short += mapped
        if request is not None:
            replaced.add(request.name)
            if largest is None or _number(largest) < _number(request):
                largest = request
    if largest is not None:
        mappings += [{**m, "requestName": largest.name} if m["requestName"] in replaced else m for m in of_short]
        return [largest, *lasting.values()], mappings
    return list(lasting.values()), mappings + of_short


def _request(
    index: int, container: core.Container, resource: str, device_class: str, reusable: Iterable[dra.DeviceRequest]
) -> tuple[dra.DeviceRequest | None, list[dra.JsonMap]]:
    """The additional request of a container, and all requests that it uses."""
    requests = container.resources.requests or {}
    missing = _count(requests.get(resource, 0))
    mappings: list[dra.JsonMap] = []
    if not missing:
        return None, mappings
    mapping = {"containerName": container.name, "resourceName": resource}
    for other in reusable:
        mappings.append({**mapping, "requestName": other.name})
        missing -= _number(other)
        if missing <= 0:
            return None, mappings
    name = f"container-{index}-request-{sorted(requests).index(resource)}"
    exact = dra.ExactDeviceRequest(device_class_name=device_class, allocation_mode="ExactCount", count=missing)
    mappings.append({**mapping, "requestName": name})
    return dra.DeviceRequest(name=name, exactly=exact), mappings


def _count(amount: quantity.Quantity) -> int:
    """A whole number of devices; 0 for other amounts, which the API server rejects."""
    try:
        number = quantity.parse(amount)
    except ValueError:
        return 0
    return int(number) if number > 0 and number == int(number) else 0


def _number(request: dra.DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _as_json(request: dra.DeviceRequest) -> dra.JsonMap:
    exact = request.exactly
    assert exact is not None
    made = {"deviceClassName": exact.device_class_name, "allocationMode": "ExactCount", "count": exact.count}
    return {"name": request.name, "exactly": made}
