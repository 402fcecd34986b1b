"""The effects of pre-bind steps in a described cluster, including the immediate reactions of its controllers.

A volume that is reserved for a claim is bound to it. A claim with a selected node is provisioned, if its class has a
provisioner. The binding conditions of devices become true. A step that is based on an older version of its object
fails, as with an API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import msgspec

from volcano_py.api import dra, storage
from volcano_py.scheduler.model.claims.extended_resources import ANNOTATION
from volcano_py.scheduler.model.jobs.pre_bind import (
    AllocateClaim,
    AwaitDevices,
    AwaitVolume,
    BindVolume,
    PreBindStep,
    SelectNode,
    StoreNode,
)
from volcano_py.scheduler.model.plan import Bind
from volcano_py.simulate.manifests import Manifest

Objects = dict[tuple[str, str], Manifest]


class StepRejected(Exception):
    """A step cannot be executed; the message is the reason."""


class ClaimWrites:
    """Executes the steps of binds on a simulation's objects.

    put   stores an object that has changed
    drop  deletes an object
    """

    def __init__(self, objects: Objects, put: Callable[[Manifest], None], drop: Callable[[str, str], None]) -> None:
        self._objects = objects
        self._put = put
        self._drop = drop
        self._made: list[tuple[str, str]] = []
        self.changed: dict[str, str] = {}
        """The results of claims, as in `CycleResult.claims`."""

    def carry_out(self, binds: Iterable[Bind]) -> dict[str, str]:
        """Execute the steps of all binds. Returns the reasons of those that fail, by the pod's uid; a bind fails with
        its whole barrier, and the changes of its steps are undone."""
        failed: dict[str, str] = {}
        members: dict[object, list[Bind]] = {}
        for number, bind in enumerate(binds):
            members.setdefault(bind.barrier or number, []).append(bind)
        for together in members.values():
            if not any(bind.steps for bind in together):
                continue
            before = {key: deepcopy(self._objects[key]) for key in self._touched(together) if key in self._objects}
            changed = dict(self.changed)
            self._made = []
            try:
                for bind in together:
                    for step in bind.steps:
                        self._carry_out(step)
            except StepRejected as e:
                failed |= {bind.uid: str(e) for bind in together}
                self.changed = changed
                for kind, key in self._made:
                    self._drop(kind, key)
                for manifest in before.values():
                    self._put(manifest)
        return failed

    def _touched(self, binds: Iterable[Bind]) -> Iterable[tuple[str, str]]:
        for bind in binds:
            for step in bind.steps:
                match step:
                    case BindVolume():
                        yield "PersistentVolume", step.volume
                        yield "PersistentVolumeClaim", f"{step.namespace}/{step.claim}"
                    case SelectNode():
                        yield "PersistentVolumeClaim", f"{step.namespace}/{step.claim}"
                    case StoreNode():
                        yield "PodGroup", f"{step.namespace}/{step.group}"
                    case AllocateClaim():
                        yield "ResourceClaim", f"{step.namespace}/{step.claim}"
                        if step.extended is not None:
                            yield "Pod", f"{step.namespace}/{step.pod}"

    def _carry_out(self, step: PreBindStep) -> None:
        match step:
            case BindVolume():
                self._bind_volume(step)
            case SelectNode():
                self._select_node(step)
            case AwaitVolume():
                claim = self._get("PersistentVolumeClaim", f"{step.namespace}/{step.claim}", "")
                if not claim["spec"].get("volumeName"):
                    raise StepRejected(f"PersistentVolumeClaim {step.namespace}/{step.claim} has no volume")
            case AllocateClaim():
                self._allocate(step)
            case AwaitDevices():
                self._await_devices(step)
            case StoreNode():
                group = deepcopy(self._get("PodGroup", f"{step.namespace}/{step.group}", ""))
                group["metadata"]["annotations"] = (group["metadata"].get("annotations") or {}) | {
                    step.annotation: step.node
                }
                self._put(group)

    def _get(self, kind: str, key: str, version: str) -> Manifest:
        found = self._objects.get((kind, key))
        if found is None:
            raise StepRejected(f"{kind} {key} does not exist")
        if version and found["metadata"].get("resourceVersion", "") != version:
            raise StepRejected(f"{kind} {key} has changed since the decision")
        return found

    def _write(self, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        number = str(metadata.get("resourceVersion") or "0")
        metadata["resourceVersion"] = str(int(number) + 1) if number.isdigit() else number + "+"
        self._put(manifest)

    def _bind_volume(self, step: BindVolume) -> None:
        key = f"{step.namespace}/{step.claim}"
        volume = self._get("PersistentVolume", step.volume, step.resource_version)
        claim = self._get("PersistentVolumeClaim", key, "")
        ref = volume["spec"].get("claimRef") or {}
        if ref and (ref.get("namespace"), ref.get("name")) != (step.namespace, step.claim):
            raise StepRejected(f"PersistentVolume {step.volume} is bound to another claim")
        self._join(volume, claim)
        self.changed[f"pvc:{key}"] = step.volume

    def _select_node(self, step: SelectNode) -> None:
        key = f"{step.namespace}/{step.claim}"
        claim = self._get("PersistentVolumeClaim", key, step.resource_version)
        annotations = claim["metadata"].setdefault("annotations", {})
        if annotations.get(storage.SELECTED_NODE) == step.node and claim["spec"].get("volumeName"):
            return
        annotations[storage.SELECTED_NODE] = step.node
        self.changed[f"pvc:{key}"] = f"@{step.node}"
        name = claim["metadata"].get("annotations", {}).get("volume.beta.kubernetes.io/storage-class")
        class_name = name or claim["spec"].get("storageClassName", "")
        provisioner = self._objects.get(("StorageClass", class_name), {}).get("provisioner", "")
        if provisioner in ("", storage.NO_PROVISIONER):
            self._write(claim)
            return
        volume = _made(claim, class_name, provisioner, step.node)
        self._made.append(("PersistentVolume", volume["metadata"]["name"]))
        self._join(volume, claim)

    def _join(self, volume: Manifest, claim: Manifest) -> None:
        """Bind a volume and a claim to each other."""
        metadata = claim["metadata"]
        volume["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        }
        volume.setdefault("status", {})["phase"] = "Bound"
        metadata.setdefault("annotations", {}).update(
            {storage.BIND_COMPLETED: "yes", storage.BOUND_BY_CONTROLLER: "yes"}
        )
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim.setdefault("status", {})["phase"] = "Bound"
        self._write(volume)
        self._write(claim)

    def _allocate(self, step: AllocateClaim) -> None:
        key = f"{step.namespace}/{step.claim}"
        if step.extended is not None:
            self._extend(step, key)
        claim = self._get("ResourceClaim", key, step.resource_version)
        status = claim.setdefault("status", {})
        if step.allocation is not None:
            if status.get("allocation") and not dra.same_devices(status["allocation"], step.allocation):
                raise StepRejected(f"ResourceClaim {key} is allocated already")
            status["allocation"] = deepcopy(step.allocation)
        elif not status.get("allocation"):
            raise StepRejected(f"ResourceClaim {key} is not allocated")
        reserved = status.setdefault("reservedFor", [])
        if all(consumer.get("uid") != step.consumer["uid"] for consumer in reserved):
            reserved.append(step.consumer)
        self._write(claim)
        self.changed[f"claim:{key}"] = shown(claim)

    def _extend(self, step: AllocateClaim, key: str) -> None:
        """Create the claim of a pod for extended resources."""
        assert step.extended is not None
        pod = self._get("Pod", f"{step.namespace}/{step.pod}", "")
        stated = {"resourceClaimName": step.claim, "requestMappings": step.extended["mappings"]}
        pod.setdefault("status", {})["extendedResourceClaimStatus"] = stated
        if ("ResourceClaim", key) not in self._objects:
            self._made.append(("ResourceClaim", key))
            self._put(_extended(step))

    def _await_devices(self, step: AwaitDevices) -> None:
        """Devices become ready at once, except those with a failure condition."""
        claim = self._get("ResourceClaim", f"{step.namespace}/{step.claim}", "")
        _, failure = dra.binding_state(msgspec.convert(claim["status"], dra.ResourceClaimStatus))
        if failure:
            raise StepRejected(f"ResourceClaim {step.namespace}/{step.claim}: device {failure}")


def _extended(step: AllocateClaim) -> Manifest:
    """The claim of a pod for extended resources."""
    assert step.extended is not None
    owner = {"apiVersion": "v1", "kind": "Pod", "name": step.pod, "uid": step.pod_uid, "controller": True}
    return {
        "apiVersion": dra.API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "name": step.claim,
            "namespace": step.namespace,
            "uid": f"{step.claim}-uid",
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": step.extended["requests"]}},
    }


def _made(claim: Manifest, class_name: str, provisioner: str, node: str) -> Manifest:
    """The volume that a provisioner creates for a claim near a node."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"made-{metadata['namespace']}-{metadata['name']}"
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": name, "creationTimestamp": metadata.get("creationTimestamp")},
        "spec": {
            "capacity": {"storage": (spec.get("resources", {}).get("requests") or {}).get("storage", "0")},
            "accessModes": spec.get("accessModes"),
            "storageClassName": class_name,
            "volumeMode": spec.get("volumeMode"),
            "csi": {"driver": provisioner, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
        },
    }
    return made


def shown(claim: Manifest) -> str:
    """A ResourceClaim's devices and consumers as one text."""
    status = claim.get("status") or {}
    devices = sorted(
        f"{r.get('request')}={r.get('driver')}/{r.get('pool')}/{r.get('device')}"
        for r in dra.results(status.get("allocation"))
    )
    consumers = ",".join(sorted(str(c.get("name")) for c in status.get("reservedFor") or ()))
    return f"{' '.join(devices)} for {consumers}"


def release_claims(objects: Objects, gone: Iterable[Manifest], drop: Callable[[str, str], None]) -> list[Manifest]:
    """Release the ResourceClaims of deleted pods, as the ResourceClaim controller does: their own claims are deleted,
    others lose the reservation, and with the last one the allocation. Returns the claims that have changed."""
    changed: list[Manifest] = []
    uids = {pod["metadata"].get("uid") for pod in gone}
    if not uids:
        return changed
    for (kind, key), claim in list(objects.items()):
        if kind != "ResourceClaim":
            continue
        if any(owner.get("uid") in uids for owner in claim["metadata"].get("ownerReferences") or ()):
            drop(kind, key)
            continue
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        left = [consumer for consumer in reserved if consumer.get("uid") not in uids]
        if len(left) != len(reserved):
            status["reservedFor"] = left
            if not left:
                status.pop("reservedFor")
                status.pop("allocation", None)
            changed.append(claim)
    return changed
