"""The pre-bind steps as API calls, and their undo. kube-scheduler: PreBind of VolumeBinding and DynamicResources.

Each step reads its object first: it does not repeat what is already written, and does not change what belongs to
another pod. A write contains the resourceVersion that was read. The undo removes what the step has written, unless
another object depends on it.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api import dra, kinds, storage
from volcano_py.api.kinds import ResourceType
from volcano_py.kube import Client, Conflict, NotFound
from volcano_py.scheduler.dispatch.node_lock_writes import lock_node, unlock_node
from volcano_py.scheduler.dispatch.step_failed import StepFailed
from volcano_py.scheduler.model.pre_bind import (
    AllocateClaim,
    AwaitVolume,
    BindVolume,
    LockNode,
    PreBindStep,
    SelectNode,
)

RETRIES = 5
"""Attempts of a write that conflicts with changes of other clients."""


class NotYet(Exception):
    """What a step waits for has not happened yet."""


async def carry_out(client: Client, step: PreBindStep) -> None:
    """Execute one step. Raises StepFailed, NotYet and KubeError."""
    match step:
        case AwaitVolume():
            await _await_volume(client, step)
        case SelectNode():
            await _retried(_select_node, client, step)
        case BindVolume():
            await _retried(_bind_volume, client, step)
        case AllocateClaim():
            await _retried(_allocate, client, step)
        case LockNode():
            await _retried(lock_node, client, step)


async def undo(client: Client, step: PreBindStep) -> None:
    """Undo one step, if it was executed. Raises KubeError."""
    match step:
        case AwaitVolume():
            return
        case SelectNode():
            await _retried(_unselect_node, client, step)
        case BindVolume():
            await _retried(_unbind_volume, client, step)
        case AllocateClaim():
            await _retried(_deallocate, client, step)
        case LockNode():
            await _retried(unlock_node, client, step)


async def _retried(write: Any, client: Client, step: PreBindStep) -> None:
    for attempt in range(RETRIES):
        try:
            await write(client, step)
            return
        except Conflict:
            if attempt == RETRIES - 1:
                raise


async def _read(client: Client, rt: ResourceType, name: str, namespace: str, type: Any) -> Any:
    try:
        return await client.get(rt, name, namespace or None, type=type)
    except NotFound:
        return None


def _unchanged(found: Any, version: str) -> None:
    """Raises StepFailed if the object has another version than the one that the step is based on."""
    if version and found.metadata.resource_version != version:
        raise StepFailed(f"{found.kind} {found.metadata.key} has changed since the decision; the pod is retried")


# ---- volumes ----------------------------------------------------------------------------------------------------


async def _claim(client: Client, step: SelectNode | AwaitVolume) -> storage.PersistentVolumeClaim:
    rt = kinds.PERSISTENTVOLUMECLAIM
    found = await _read(client, rt, step.claim, step.namespace, storage.PersistentVolumeClaim)
    name = f"PersistentVolumeClaim {step.namespace}/{step.claim}"
    if found is None or (step.uid and found.metadata.uid != step.uid):
        raise StepFailed(f"{name} of uid {step.uid} was deleted")
    if found.metadata.deletion_timestamp:
        raise StepFailed(f"{name} is being deleted")
    claim: storage.PersistentVolumeClaim = found
    return claim


async def _select_node(client: Client, step: SelectNode) -> None:
    claim = await _claim(client, step)
    _unchanged(claim, step.resource_version)
    selected = (claim.metadata.annotations or {}).get(storage.SELECTED_NODE)
    if selected == step.node:
        return
    name = f"PersistentVolumeClaim {step.namespace}/{step.claim}"
    if claim.spec.volume_name:
        raise StepFailed(f"{name} was bound to volume {claim.spec.volume_name} in the meantime")
    if selected:
        raise StepFailed(f"{name} is being provisioned for node {selected}")
    await _annotate(client, claim, step.node)


async def _unselect_node(client: Client, step: SelectNode) -> None:
    try:
        claim = await _claim(client, step)
    except StepFailed:
        return
    mine = (claim.metadata.annotations or {}).get(storage.SELECTED_NODE) == step.node
    if mine and not claim.spec.volume_name:
        await _annotate(client, claim, None)


async def _annotate(client: Client, claim: storage.PersistentVolumeClaim, node: str | None) -> None:
    meta = claim.metadata
    body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": {storage.SELECTED_NODE: node}}}
    await client.patch(kinds.PERSISTENTVOLUMECLAIM, meta.name, body, meta.namespace, "merge")


async def _await_volume(client: Client, step: AwaitVolume) -> None:
    claim = await _claim(client, step)
    annotations = claim.metadata.annotations or {}
    if claim.spec.volume_name and storage.BIND_COMPLETED in annotations:
        return
    name = f"PersistentVolumeClaim {step.namespace}/{step.claim}"
    if step.node and not claim.spec.volume_name and annotations.get(storage.SELECTED_NODE) != step.node:
        raise StepFailed(f"{name}: the provisioner created no volume for node {step.node}")
    raise NotYet(f"{name} has no volume yet; see `kubectl describe pvc` and the logs of its provisioner")


async def _bind_volume(client: Client, step: BindVolume) -> None:
    volume = await _read(client, kinds.PERSISTENTVOLUME, step.volume, "", storage.PersistentVolume)
    if volume is None or volume.metadata.deletion_timestamp:
        raise StepFailed(f"PersistentVolume {step.volume} was deleted")
    ref = volume.spec.claim_ref
    wanted = (step.namespace, step.claim)
    if ref is not None and (ref.namespace, ref.name) == wanted and ref.uid == step.uid:
        return
    _unchanged(volume, step.resource_version)
    if ref is not None and ((ref.namespace, ref.name) != wanted or ref.uid):
        owner = f"{ref.namespace}/{ref.name}"
        raise StepFailed(f"PersistentVolume {step.volume} was bound to claim {owner} in the meantime")
    claim_ref = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": step.namespace,
        "name": step.claim,
        "uid": step.uid,
    }
    annotations = {} if ref is not None else {storage.BOUND_BY_CONTROLLER: "yes"}
    body = {
        "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": annotations},
        "spec": {"claimRef": claim_ref},
    }
    await client.patch(kinds.PERSISTENTVOLUME, step.volume, body, None, "merge")


async def _unbind_volume(client: Client, step: BindVolume) -> None:
    volume = await _read(client, kinds.PERSISTENTVOLUME, step.volume, "", storage.PersistentVolume)
    if volume is None or volume.status.phase == "Bound":
        return
    ref = volume.spec.claim_ref
    mine = ref is not None and (ref.namespace, ref.name, ref.uid) == (step.namespace, step.claim, step.uid)
    # Without the annotation the volume was already reserved for the claim.
    if mine and storage.BOUND_BY_CONTROLLER in (volume.metadata.annotations or {}):
        body = {
            "metadata": {
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {storage.BOUND_BY_CONTROLLER: None},
            },
            "spec": {"claimRef": None},
        }
        await client.patch(kinds.PERSISTENTVOLUME, step.volume, body, None, "merge")


# ---- ResourceClaims -----------------------------------------------------------------------------------------------


async def _resource_claim(client: Client, step: AllocateClaim) -> dra.ResourceClaim | None:
    found = await _read(client, kinds.RESOURCECLAIM, step.claim, step.namespace, dra.ResourceClaim)
    if found is None or (step.uid and found.metadata.uid != step.uid):
        return None
    claim: dra.ResourceClaim = found
    return claim


async def _allocate(client: Client, step: AllocateClaim) -> None:
    claim = await _resource_claim(client, step)
    name = f"ResourceClaim {step.namespace}/{step.claim}"
    if claim is None or claim.metadata.deletion_timestamp:
        raise StepFailed(f"{name} of uid {step.uid} was deleted")
    reserved = list(claim.status.reserved_for or ())
    mine = any(r.uid == step.pod_uid for r in reserved)
    has = claim.status.allocation
    if has is None and step.allocation is None:
        raise StepFailed(f"{name} was deallocated in the meantime")
    if has is not None and step.allocation is not None and not dra.same_devices(has, step.allocation):
        raise StepFailed(f"{name} was allocated in the meantime")
    if mine and has is not None:
        return
    _unchanged(claim, step.resource_version)
    if len(reserved) >= dra.MAX_CONSUMERS:
        raise StepFailed(f"{name} is reserved by {dra.MAX_CONSUMERS} pods, which is the limit")
    version = claim.metadata.resource_version
    finalizers = claim.metadata.finalizers or []
    if has is None and dra.FINALIZER not in finalizers:
        body: dict[str, Any] = {"metadata": {"resourceVersion": version, "finalizers": [*finalizers, dra.FINALIZER]}}
        found = await client.patch(
            kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge", type=dra.ResourceClaim
        )
        version = found.metadata.resource_version
    consumers = [dra.reference(r) for r in reserved]
    if not mine:
        consumers.append({"resource": "pods", "name": step.pod, "uid": step.pod_uid})
    status: dict[str, Any] = {"reservedFor": consumers}
    if has is None:
        status["allocation"] = step.allocation
    body = {"metadata": {"resourceVersion": version}, "status": status}
    await client.patch(kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge", "status")


async def _deallocate(client: Client, step: AllocateClaim) -> None:
    """Remove the reservation, and with the last one the allocation, as the ResourceClaim controller does."""
    claim = await _resource_claim(client, step)
    if claim is None:
        return
    reserved = list(claim.status.reserved_for or ())
    others = [r for r in reserved if r.uid != step.pod_uid]
    version, allocated = claim.metadata.resource_version, claim.status.allocation is not None
    if len(others) != len(reserved):
        status: dict[str, Any] = {"reservedFor": [dra.reference(r) for r in others] or None}
        if not others:
            status["allocation"], allocated = None, False
        body: dict[str, Any] = {"metadata": {"resourceVersion": version}, "status": status}
        found = await client.patch(
            kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge", "status", type=dra.ResourceClaim
        )
        version = found.metadata.resource_version
    if dra.FINALIZER in (claim.metadata.finalizers or ()) and not allocated:
        left = [f for f in claim.metadata.finalizers or () if f != dra.FINALIZER]
        body = {"metadata": {"resourceVersion": version, "finalizers": left or None}}
        await client.patch(kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge")
