"""The volume of a claim: an existing one, or a new one.

Kubernetes: the persistent volume controller's index.go, and an external provisioner that never fails.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import quantity, selectors
from volcano_py.sandbox.apiserver.apimachinery.metadata import subdomain_errors
from volcano_py.sandbox.controllers.node import node_selector

Object = dict[str, Any]

BOUND_BY = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def is_reserved_for(volume: Object, claim: Object) -> bool:
    """Whether a volume's claimRef refers to this claim."""
    reference, meta = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None or (reference.get("namespace"), reference.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return reference.get("uid") in (None, "", meta["uid"])


def find(claim: Object, volumes: list[Object], node_labels: Object | None) -> Object | None:
    """The volume reserved for a claim, else the smallest that matches; `node_labels`: those of the node."""
    fitting = [row for row in volumes if fits(row, claim) and _reaches(row, node_labels)]
    reserved = [row for row in fitting if is_reserved_for(row, claim)]
    free = [row for row in fitting if row["spec"].get("claimRef") is None]
    if reserved:
        return reserved[0]
    return min(free, key=lambda row: (size(row["spec"]["capacity"]), row["metadata"]["name"]), default=None)


def reserved(claim: Object, volumes: list[Object]) -> Object | None:
    """The volume that a scheduler, or an administrator, has reserved for a claim."""
    return next((row for row in volumes if fits(row, claim) and is_reserved_for(row, claim)), None)


def fits(volume: Object, claim: Object) -> bool:
    """Whether class, modes, size and labels match, bound or not."""
    offer, wanted = volume["spec"], claim["spec"]
    if volume["metadata"].get("deletionTimestamp"):
        return False
    if offer.get("storageClassName", "") != (wanted.get("storageClassName") or ""):
        return False
    if offer.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(offer.get("accessModes") or ()):
        return False
    match = selectors.from_label_selector(wanted.get("selector"))
    if match is not None and not match(volume["metadata"].get("labels") or {}):
        return False
    return size(offer.get("capacity") or {}) >= size((wanted.get("resources") or {}).get("requests") or {})


def size(amounts: Object) -> Fraction:
    return quantity.parse(amounts.get("storage", "0"))


def _reaches(volume: Object, node_labels: Object | None) -> bool:
    """Whether a node may use a volume; True while no node is selected."""
    terms = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    if terms is None or node_labels is None:
        return True
    return node_selector.matches(terms, node_labels)


def provision(claim: Object, storage_class: Object, node: str) -> Object:
    """A new volume for a claim of a class."""
    meta, wanted = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    spec: Object = {
        "capacity": {"storage": wanted["resources"]["requests"]["storage"]},
        "accessModes": wanted["accessModes"],
        "volumeMode": wanted.get("volumeMode", "Filesystem"),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": storage_class["metadata"]["name"],
        "claimRef": claim_reference(claim),
        **_source(storage_class["provisioner"], name),
    }
    if storage_class.get("mountOptions"):
        spec["mountOptions"] = storage_class["mountOptions"]
    annotations = {PROVISIONED_BY: storage_class["provisioner"]}
    if node:
        annotations[SELECTED_NODE] = node
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def _source(provisioner: str, name: str) -> Object:
    """Where a volume is: that of a CSI driver, or, for a provisioner whose name is none of a driver, a path of its
    node."""
    if len(provisioner) <= 63 and not subdomain_errors(provisioner.lower()):
        return {"csi": {"driver": provisioner, "volumeHandle": name}}
    return {"hostPath": {"path": f"/var/lib/volumes/{name}", "type": "DirectoryOrCreate"}}


def claim_reference(claim: Object) -> Object:
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def default_class(classes: list[Object]) -> Object | None:
    """The class of claims without one: the newest that is marked as default."""
    key = "storageclass.kubernetes.io/is-default-class"
    marked = [row for row in classes if (row["metadata"].get("annotations") or {}).get(key) == "true"]
    return max(marked, key=lambda row: (row["metadata"]["creationTimestamp"], row["metadata"]["name"]), default=None)
