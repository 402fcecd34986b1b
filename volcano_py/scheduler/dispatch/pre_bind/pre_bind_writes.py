"""The pre-bind steps as API calls, and their undo; those of volumes. kube-scheduler: PreBind of VolumeBinding.

Each step reads its object first: it does not repeat what is already written, and does not change what belongs to
another pod. A write contains the resourceVersion that was read. The undo removes what the step has written, unless
another object depends on it.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api import kinds, storage
from volcano_py.kube import Client, Conflict
from volcano_py.scheduler.dispatch.pre_bind.node_lock_writes import lock_node, unlock_node
from volcano_py.scheduler.dispatch.pre_bind.resource_claim_writes import allocate, await_devices, deallocate
from volcano_py.scheduler.dispatch.pre_bind.step_objects import NotYet, StepFailed, read, unchanged
from volcano_py.scheduler.dispatch.pre_bind.stored_node_writes import remove_node, store_node
from volcano_py.scheduler.model.jobs.pre_bind import (
    AllocateClaim,
    AwaitDevices,
    AwaitVolume,
    BindVolume,
    LockNode,
    PreBindStep,
    SelectNode,
    StoreNode,
)

RETRIES = 5
"""Attempts of a write that conflicts with changes of other clients."""


async def carry_out(client: Client, step: PreBindStep) -> None:
    """Execute one step. Raises StepFailed, NotYet and KubeError."""
    match step:
        case AwaitVolume():
            await _await_volume(client, step)
        case AwaitDevices():
            await await_devices(client, step)
        case SelectNode():
            await _retried(_select_node, client, step)
        case BindVolume():
            await _retried(_bind_volume, client, step)
        case AllocateClaim():
            await _retried(allocate, client, step)
        case LockNode():
            await _retried(lock_node, client, step)
        case StoreNode():
            await _retried(store_node, client, step)


async def undo(client: Client, step: PreBindStep) -> None:
    """Undo one step, if it was executed. Raises KubeError."""
    match step:
        case AwaitVolume() | AwaitDevices():
            return
        case SelectNode():
            await _retried(_unselect_node, client, step)
        case BindVolume():
            await _retried(_unbind_volume, client, step)
        case AllocateClaim():
            await _retried(deallocate, client, step)
        case LockNode():
            await _retried(unlock_node, client, step)
        case StoreNode():
            await _retried(remove_node, client, step)


async def _retried(write: Any, client: Client, step: PreBindStep) -> None:
    for attempt in range(RETRIES):
        try:
            await write(client, step)
            return
        except Conflict:
            if attempt == RETRIES - 1:
                raise


# ---- volumes ----------------------------------------------------------------------------------------------------


async def _claim(client: Client, step: SelectNode | AwaitVolume) -> storage.PersistentVolumeClaim:
    rt = kinds.PERSISTENTVOLUMECLAIM
    found = await read(client, rt, step.claim, step.namespace, storage.PersistentVolumeClaim)
    name = f"PersistentVolumeClaim {step.namespace}/{step.claim}"
    if found is None or (step.uid and found.metadata.uid != step.uid):
        raise StepFailed(f"{name} of uid {step.uid} was deleted")
    if found.metadata.deletion_timestamp:
        raise StepFailed(f"{name} is being deleted")
    claim: storage.PersistentVolumeClaim = found
    return claim


async def _select_node(client: Client, step: SelectNode) -> None:
    claim = await _claim(client, step)
    unchanged(claim, step.resource_version)
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
    volume = await read(client, kinds.PERSISTENTVOLUME, step.volume, "", storage.PersistentVolume)
    if volume is None or volume.metadata.deletion_timestamp:
        raise StepFailed(f"PersistentVolume {step.volume} was deleted")
    ref = volume.spec.claim_ref
    wanted = (step.namespace, step.claim)
    if ref is not None and (ref.namespace, ref.name) == wanted and ref.uid == step.uid:
        return
    unchanged(volume, step.resource_version)
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
    volume = await read(client, kinds.PERSISTENTVOLUME, step.volume, "", storage.PersistentVolume)
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
