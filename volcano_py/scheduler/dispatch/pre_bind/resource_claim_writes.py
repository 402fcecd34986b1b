"""Allocating and releasing ResourceClaims, as API calls. kube-scheduler: PreBind of DynamicResources.

A claim is allocated and reserved for its pod in one write. Devices with binding conditions are then waited for; when
one of them fails, the undo deallocates the claim, so that the next attempt can choose other devices.
"""

from __future__ import annotations

import time
from typing import Any

from volcano_py.api import dra, kinds
from volcano_py.api.meta import format_time, parse_time
from volcano_py.kube import Client
from volcano_py.scheduler.dispatch.pre_bind.extended_claim_writes import create_extended, delete_extended, state_in_pod
from volcano_py.scheduler.dispatch.pre_bind.step_objects import NotYet, StepFailed, read, unchanged
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, AwaitDevices


async def _resource_claim(client: Client, step: AllocateClaim | AwaitDevices) -> dra.ResourceClaim | None:
    found = await read(client, kinds.RESOURCECLAIM, step.claim, step.namespace, dra.ResourceClaim)
    if found is None or (step.uid and found.metadata.uid != step.uid):
        return None
    claim: dra.ResourceClaim = found
    return claim


async def allocate(client: Client, step: AllocateClaim) -> None:
    """Reserve a claim for a pod, and write its allocation. Raises StepFailed and KubeError."""
    claim = await _resource_claim(client, step)
    name = f"ResourceClaim {step.namespace}/{step.claim}"
    if step.extended is not None:
        claim = await create_extended(client, step, claim)
        await state_in_pod(client, step)
    if claim is None or claim.metadata.deletion_timestamp:
        raise StepFailed(f"{name} of uid {step.uid} was deleted")
    reserved = list(claim.status.reserved_for or ())
    mine = any(r.uid == step.consumer["uid"] for r in reserved)
    has = claim.status.allocation
    if has is None and step.allocation is None:
        raise StepFailed(f"{name} was deallocated in the meantime")
    if has is not None and step.allocation is not None and not dra.same_devices(has, step.allocation):
        raise StepFailed(f"{name} was allocated in the meantime")
    if mine and has is not None:
        return
    unchanged(claim, step.resource_version)
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
        consumers.append(step.consumer)
    status: dict[str, Any] = {"reservedFor": consumers}
    if has is None and step.allocation is not None:
        status["allocation"] = _dated(step.allocation)
    body = {"metadata": {"resourceVersion": version}, "status": status}
    await client.patch(kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge", "status")


async def deallocate(client: Client, step: AllocateClaim) -> None:
    """Remove the reservation, and with the last one the allocation, as the ResourceClaim controller does. A claim that
    is reserved for a PodGroup stays: other members may use it."""
    if step.group_uid:
        return
    claim = await _resource_claim(client, step)
    if claim is None:
        return
    if step.extended is not None:
        await delete_extended(client, claim)
        return
    reserved = list(claim.status.reserved_for or ())
    others = [r for r in reserved if r.uid != step.pod_uid]
    version, allocated = claim.metadata.resource_version, claim.status.allocation is not None
    if len(others) != len(reserved):
        status: dict[str, Any] = {"reservedFor": [dra.reference(r) for r in others] or None}
        if not others:
            status["allocation"], status["devices"], allocated = None, None, False
        body: dict[str, Any] = {"metadata": {"resourceVersion": version}, "status": status}
        found = await client.patch(
            kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge", "status", type=dra.ResourceClaim
        )
        version = found.metadata.resource_version
    if dra.FINALIZER in (claim.metadata.finalizers or ()) and not allocated:
        left = [f for f in claim.metadata.finalizers or () if f != dra.FINALIZER]
        body = {"metadata": {"resourceVersion": version, "finalizers": left or None}}
        await client.patch(kinds.RESOURCECLAIM, step.claim, body, step.namespace, "merge")


async def await_devices(client: Client, step: AwaitDevices) -> None:
    """Check the binding conditions of a claim's devices. Raises StepFailed, NotYet and KubeError."""
    claim = await _resource_claim(client, step)
    name = f"ResourceClaim {step.namespace}/{step.claim}"
    if claim is None or claim.status.allocation is None:
        raise StepFailed(f"{name} was deleted or deallocated in the meantime")
    ready, failure = dra.binding_state(claim.status)
    if failure:
        raise StepFailed(f"{name}: device {failure}")
    if not ready and _age(claim.status.allocation) > step.timeout:
        # also if the scheduler was restarted since: that does not extend the time
        raise StepFailed(f"{name}: its devices were not ready {step.timeout:.0f} seconds after their allocation")
    if not ready:
        raise NotYet(f"{name}: the binding conditions of its devices are not true; see the logs of their driver")


def _dated(allocation: dra.JsonMap) -> dra.JsonMap:
    """With the time from which other components measure how long devices take to become ready."""
    if not dra.has_binding_conditions(allocation):
        return allocation
    return {**allocation, "allocationTimestamp": format_time(time.time())}


def _age(allocation: dra.JsonMap) -> float:
    """Seconds since an allocation; 0 if it states no valid time."""
    try:
        return time.time() - parse_time(allocation.get("allocationTimestamp") or "")
    except ValueError:
        return 0.0
