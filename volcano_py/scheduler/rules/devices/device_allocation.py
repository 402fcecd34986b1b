"""Chosen devices as the allocation of a ResourceClaim. kube-scheduler: the allocation result of the structured
allocator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import NAMESPACE_OID, uuid5

from msgspec import to_builtins

from volcano_py.api import dra, quantity
from volcano_py.api.core import Toleration
from volcano_py.scheduler.rules.devices.device_allocator import Chosen

DeviceClassByName = Callable[[str], dra.DeviceClass | None]


def allocation_of(
    claim: dra.ResourceClaim, chosen: Sequence[Chosen], node: str, device_class: DeviceClassByName
) -> dra.JsonMap:
    """`status.allocation` for chosen devices."""
    results: list[dra.JsonMap] = []
    for number, (request, device, admin, consumed, tolerations) in enumerate(chosen):
        driver, pool, name = device.id
        result: dra.JsonMap = {"request": request, "driver": driver, "pool": pool, "device": name}
        if admin:
            result["adminAccess"] = True
        if device.spec.binding_conditions:
            result["bindingConditions"] = device.spec.binding_conditions
            if device.spec.binding_failure_conditions:
                result["bindingFailureConditions"] = device.spec.binding_failure_conditions
        if tolerations:
            result["tolerations"] = [_toleration(t) for t in tolerations]
        if consumed is not None:
            result["shareID"] = str(uuid5(NAMESPACE_OID, f"{claim.metadata.uid}/{number}"))
            result["consumedCapacity"] = {
                dimension: quantity.format_amount(amount, "BinarySI") for dimension, amount in consumed.items()
            }
        results.append(result)
    allocation: dra.JsonMap = {"devices": {"results": results}}
    config = _config(claim, {c.request for c in chosen}, device_class)
    if config:
        allocation["devices"]["config"] = config
    selector = _selector(chosen, node)
    if selector is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _toleration(t: Toleration) -> dra.JsonMap:
    found = {"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect}
    return {key: value for key, value in found.items() if value}


def _config(claim: dra.ResourceClaim, requests: set[str], device_class: DeviceClassByName) -> list[dra.JsonMap]:
    """The configuration of the chosen requests: that of their classes, then that of the claim."""
    found: list[dra.JsonMap] = []
    for request in claim.spec.devices.requests or ():
        subs = [(f"{request.name}/{s.name}", s) for s in request.first_available or ()]
        for name, exact in [(request.name, request.exactly), *subs]:
            if exact is not None and name in requests:
                of_class = device_class(exact.device_class_name)
                for entry in (of_class.spec.config if of_class is not None else None) or ():
                    found.append({"source": "FromClass", "requests": [name], **entry})
    for entry in claim.spec.devices.config or ():
        named = entry.get("requests") or []
        if not named or any(r in named or r.partition("/")[0] in named for r in requests):
            found.append({"source": "FromClaim", **entry})
    return found


def _selector(chosen: Sequence[Chosen], node: str) -> dra.JsonMap | None:
    """The nodes on which all of the devices can be used; None: any. It is one node, if one of the devices is local to
    it or binds to it. Of the selectors of other devices, all requirements hold."""
    requirements: dict[str, list[dra.JsonMap]] = {"matchExpressions": [], "matchFields": []}
    for device in (c.device for c in chosen):
        terms = device.selector.node_selector_terms if device.selector is not None else None
        if device.node is not None or device.spec.binds_to_node or len(terms or ()) > 1:
            by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
        for term in terms or ():
            for field, found in to_builtins(term).items():
                requirements[field] += [r for r in found or () if r not in requirements[field]]
    made = {field: found for field, found in requirements.items() if found}
    return {"nodeSelectorTerms": [made]} if made else None
