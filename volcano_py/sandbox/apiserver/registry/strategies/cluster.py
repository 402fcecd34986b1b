"""Namespaces, nodes, priority classes, leases, storage classes: kinds of the cluster as a whole.

Kubernetes: their packages in pkg/registry and pkg/apis.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata, quantity
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    field_forbidden,
    invalid_value,
    required,
    unsupported,
)
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

NAMESPACE_LABEL = "kubernetes.io/metadata.name"


# --- namespaces ------------------------------------------------------------------------------------------------------


def _default_namespace(obj: Object) -> None:
    name = obj.get("metadata", {}).get("name")
    if name:
        obj["metadata"].setdefault("labels", {})[NAMESPACE_LABEL] = name


def _namespace_create(obj: Object, request: Request) -> None:
    obj["metadata"].setdefault("labels", {})[NAMESPACE_LABEL] = obj["metadata"]["name"]
    spec = obj.setdefault("spec", {})
    finalizers = spec.setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    obj["status"] = {"phase": "Active"}


def _namespace_update(new: Object, old: Object, request: Request) -> None:
    finalizers = old.get("spec", {}).get("finalizers")
    if request.subresource != "finalize":
        new.setdefault("spec", {}).pop("finalizers", None)
        if finalizers:
            new["spec"]["finalizers"] = finalizers


def _namespace_status(new: Object, old: Object, request: Request) -> list[Cause]:
    phase = (new.get("status") or {}).get("phase", "")
    if new["metadata"].get("deletionTimestamp"):
        if phase != "Terminating":
            text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid_value("status.Phase", phase, text)]
    elif phase != "Active":
        text = "may only be 'Active' if `deletionTimestamp` is empty"
        return [invalid_value("status.Phase", phase, text)]
    return []


# --- nodes -----------------------------------------------------------------------------------------------------------


def _default_node(obj: Object) -> None:
    status = obj.get("status") or {}
    capacity = status.get("capacity")
    if capacity and "allocatable" not in status:
        status["allocatable"] = dict(capacity)
    spec = obj.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]


def _node(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or []):
        at = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        out.extend(invalid_value(f"{at}.key", key, m) for m in metadata.qualified_errors(key))
        value = taint.get("value", "")
        out.extend(invalid_value(f"{at}.value", value, m) for m in metadata.label_value_errors(value))
        choices = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
        if not effect:
            out.append(required(f"{at}.effect"))
        elif effect not in choices:
            out.append(unsupported(f"{at}.effect", effect, choices))
        if (key, effect) in seen:
            out.append(duplicate(at, taint))
            out[-1].message = f"{out[-1].message}: taints must be unique by key and effect pair"
        seen.add((key, effect))
    return out


def _node_status(new: Object, old: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    for kind in ("capacity", "allocatable"):
        for name, amount in (new["status"].get(kind) or {}).items():
            if quantity.parse(str(amount)) < 0:
                out.append(invalid_value(f"status.{kind}.{name}", amount, "must be greater than or equal to 0"))
    return out


def _node_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = _node(new, request)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if before.get("podCIDR") and spec.get("podCIDR") != before["podCIDR"]:
        text = 'node updates may not change podCIDR except from "" to valid'
        out.append(field_forbidden("spec.podCIDRs", text))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        text = 'node updates may not change providerID except from "" to valid'
        out.append(field_forbidden("spec.providerID", text))
    return out


def _keep_node_status(new: Object, old: Object, request: Request) -> None:
    if "status" in old:
        new["status"] = old["status"]


# --- priority classes ------------------------------------------------------------------------------------------------

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _default_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _class(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    name = obj["metadata"].get("name", "")
    if name.startswith("system-") and name not in SYSTEM_CLASSES:
        text = "priority class names with 'system-' prefix are reserved for system use only. error: " + (
            f"{name} is not a known system priority class"
        )
        out.append(field_forbidden("metadata.name", text))
    elif name not in SYSTEM_CLASSES and obj.get("value", 0) > HIGHEST_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        out.append(field_forbidden("value", text))
    if obj["preemptionPolicy"] not in ("PreemptLowerPriority", "Never"):
        choices = ["Never", "PreemptLowerPriority"]
        out.append(unsupported("preemptionPolicy", obj["preemptionPolicy"], choices))
    return out


def _class_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = []
    if new.get("value", 0) != old.get("value", 0):
        out.append(field_forbidden("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        out.append(invalid_value("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"))
    return out


def _class_delete(obj: Object, request: Request) -> None:
    name = obj["metadata"]["name"]
    if name in SYSTEM_CLASSES:
        text = "this is a system priority class and cannot be deleted"
        raise errors.forbidden("scheduling.k8s.io", "priorityclasses", name, text)


# --- leases ----------------------------------------------------------------------------------------------------------


def _lease(obj: Object, request: Request) -> list[Cause]:
    spec = obj.get("spec") or {}
    out: list[Cause] = []
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        value = spec["leaseDurationSeconds"]
        out.append(invalid_value("spec.leaseDurationSeconds", value, "must be greater than 0"))
    if "leaseTransitions" in spec and spec["leaseTransitions"] < 0:
        value = spec["leaseTransitions"]
        text = "must be greater than or equal to 0"
        out.append(invalid_value("spec.leaseTransitions", value, text))
    return out


# --- storage ---------------------------------------------------------------------------------------------------------


def _default_storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _default_driver(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


def _default_claim(claim: Object) -> None:
    for request in (claim["spec"].get("devices") or {}).get("requests") or []:
        for each in (request.get("exactly"), *(request.get("firstAvailable") or [])):
            if each is not None and each.setdefault("allocationMode", "ExactCount") == "ExactCount":
                each["count"] = each.get("count") or 1


def _default_claim_template(template: Object) -> None:
    _default_claim(template["spec"])


STRATEGIES = {
    "namespaces": Strategy(
        default=_default_namespace,
        prepare_create=_namespace_create,
        prepare_update=_namespace_update,
        validate_status=_namespace_status,
        name_errors=metadata.label_errors,
        has_status=True,
        fields=lambda obj: {
            "status.phase": (obj.get("status") or {}).get("phase", ""),
            "name": obj["metadata"]["name"],
        },
        field_names=frozenset({"status.phase", "name"}),
        reset_fields=("status",),
        returns_deleted=True,
    ),
    "nodes": Strategy(
        default=_default_node,
        validate_create=_node,
        prepare_update=_keep_node_status,
        validate_update=_node_update,
        validate_status=_node_status,
        fields=lambda obj: {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"},
        field_names=frozenset({"spec.unschedulable"}),
        reset_fields=("status",),
        returns_deleted=False,
    ),
    "priorityclasses.scheduling.k8s.io": Strategy(
        default=_default_class,
        validate_create=_class,
        validate_update=_class_update,
        before_delete=_class_delete,
        prepare_create=lambda obj, request: obj["metadata"].__setitem__("generation", 1),
    ),
    "leases.coordination.k8s.io": Strategy(
        validate_create=_lease,
        validate_update=lambda new, old, request: _lease(new, request),
        create_on_update=True,
        unconditional_update=False,
    ),
    "storageclasses.storage.k8s.io": Strategy(default=_default_storage_class, returns_deleted=True),
    "csidrivers.storage.k8s.io": Strategy(default=_default_driver, has_generation=True),
    "volumeattachments.storage.k8s.io": Strategy(has_status=True, returns_deleted=True),
    "resourceclaims.resource.k8s.io": Strategy(default=_default_claim, has_status=True, returns_deleted=True),
    "resourceclaimtemplates.resource.k8s.io": Strategy(default=_default_claim_template, returns_deleted=True),
    "customresourcedefinitions.apiextensions.k8s.io": Strategy(),
}
