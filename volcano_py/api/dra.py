"""resource.k8s.io: devices that drivers publish, and the claims for them. Kubernetes: k8s.io/api/resource/v1.

Parts that the scheduler only copies (allocations, opaque configuration) stay plain JSON.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from volcano_py.api.affinity import NodeSelector
from volcano_py.api.core import Toleration
from volcano_py.api.meta import ApiObject, ApiType
from volcano_py.api.quantity import Quantity

API_VERSION = "resource.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer of allocated claims: their deletion waits for the deallocation."""
MAX_CONSUMERS = 256
"""Maximum number of pods that may use one claim."""
REPELLING = ("NoSchedule", "NoExecute")
"""Effects of device taints that keep devices from claims which do not tolerate them."""
MAX_DEVICES = 32
"""Maximum number of devices of one claim."""

JsonMap = dict[str, Any]

# ---- published devices ------------------------------------------------------------------------------------------


class DeviceAttribute(ApiType):
    """Exactly one of the fields is set."""

    int_: int | None = field(default=None, name="int")
    bool_: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(ApiType):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(ApiType):
    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(ApiType):
    value: Quantity = "0"
    request_policy: CapacityPolicy | None = None


class Counter(ApiType):
    value: Quantity = "0"


class CounterSet(ApiType):
    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(ApiType):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceTaint(ApiType):
    key: str = ""
    value: str = ""
    effect: str = ""
    """`NoSchedule`, `NoExecute` or `None`."""
    time_added: str | None = None


class Device(ApiType):
    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[CounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(ApiType):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(ApiType):
    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(ApiObject):
    api_version: str = API_VERSION
    kind: str = "ResourceSlice"
    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


class DeviceTaintSelector(ApiType):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiType):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRule(ApiObject):
    api_version: str = "resource.k8s.io/v1beta2"
    kind: str = "DeviceTaintRule"
    spec: DeviceTaintRuleSpec = field(default_factory=DeviceTaintRuleSpec)


# ---- requested devices ------------------------------------------------------------------------------------------


class CELSelector(ApiType):
    expression: str = ""


class DeviceSelector(ApiType):
    cel: CELSelector | None = None


class DeviceClassSpec(ApiType):
    selectors: list[DeviceSelector] | None = None
    config: list[JsonMap] | None = None
    extended_resource_name: str | None = None


class DeviceClass(ApiObject):
    api_version: str = API_VERSION
    kind: str = "DeviceClass"
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class CapacityRequirements(ApiType):
    requests: dict[str, Quantity] | None = None


class ExactDeviceRequest(ApiType):
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    """`ExactCount` (also when empty) or `All`."""
    count: int = 0
    """0 counts as 1."""
    admin_access: bool | None = None
    tolerations: list[Toleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ExactDeviceRequest):
    name: str = ""


class DeviceRequest(ApiType):
    """`exactly` or `first_available`."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(ApiType):
    requests: list[str] | None = None
    """Empty: all requests."""
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(ApiType):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[JsonMap] | None = None


class ResourceClaimSpec(ApiType):
    devices: DeviceClaim = field(default_factory=DeviceClaim)


class ResourceClaimConsumer(ApiType):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(ApiType):
    allocation: JsonMap | None = None
    reserved_for: list[ResourceClaimConsumer] | None = None
    devices: list[JsonMap] | None = None
    """What drivers report about allocated devices."""


class ResourceClaim(ApiObject):
    api_version: str = API_VERSION
    kind: str = "ResourceClaim"
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(ApiType):
    metadata: JsonMap | None = None
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(ApiObject):
    api_version: str = API_VERSION
    kind: str = "ResourceClaimTemplate"
    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)


# ---- reading allocations ------------------------------------------------------------------------------------------


def results(allocation: JsonMap | None) -> list[JsonMap]:
    """The allocated devices: `request`, `driver`, `pool`, `device` and more of each."""
    devices = (allocation or {}).get("devices") or {}
    found = devices.get("results") if isinstance(devices, dict) else None
    return [r for r in found or () if isinstance(r, dict)]


def device_id(result: JsonMap) -> tuple[str, str, str]:
    """Driver, pool and device of one allocated device."""
    return str(result.get("driver", "")), str(result.get("pool", "")), str(result.get("device", ""))


def has_binding_conditions(allocation: JsonMap | None) -> bool:
    """Whether a pod may be bound only after conditions of an allocated device have become true."""
    return any(result.get("bindingConditions") for result in results(allocation))


def binding_state(status: ResourceClaimStatus) -> tuple[bool, str]:
    """Whether the binding conditions of all allocated devices are true, and why one of the devices has failed."""
    for result in results(status.allocation):
        wanted = result.get("bindingConditions") or ()
        if not wanted:
            continue
        reported = next((d for d in status.devices or () if device_id(d) == device_id(result)), None)
        if reported is None:
            return False, ""
        true = {c.get("type"): c for c in reported.get("conditions") or () if c.get("status") == "True"}
        for name in result.get("bindingFailureConditions") or ():
            if name in true:
                text = f"{'/'.join(device_id(result))} has {name}"
                details = [str(true[name].get(key) or "") for key in ("reason", "message")]
                return False, ": ".join([text, *filter(None, details)])
        if not all(name in true for name in wanted):
            return False, ""
    return True, ""


def same_devices(one: JsonMap | None, other: JsonMap | None) -> bool:
    """Whether two allocations assign the same devices to the same requests."""
    first, second = ([(r.get("request"), device_id(r), r.get("shareID")) for r in results(a)] for a in (one, other))
    return sorted(map(str, first)) == sorted(map(str, second))


def reference(consumer: ResourceClaimConsumer) -> JsonMap:
    """A consumer as an entry of `status.reservedFor`."""
    found = {"resource": consumer.resource, "name": consumer.name, "uid": consumer.uid}
    return {"apiGroup": consumer.api_group, **found} if consumer.api_group else found
