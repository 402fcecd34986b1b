"""The ResourceClaims that the scheduler creates for extended resources, as API calls. kube-scheduler: PreBind and
Unreserve of DynamicResources, for extended resources.

The claim belongs to its pod, so that it is deleted with it. The pod's status states the requests of each container,
where the kubelet finds its devices.
"""

from __future__ import annotations

from volcano_py.api import dra, kinds
from volcano_py.kube import AlreadyExists, Client, NotFound
from volcano_py.scheduler.dispatch.pre_bind.step_objects import StepFailed, read
from volcano_py.scheduler.model.claims.extended_resources import claim_manifest
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim


async def create_extended(client: Client, step: AllocateClaim, found: dra.ResourceClaim | None) -> dra.ResourceClaim:
    """Create the claim of a pod, unless an earlier attempt has. Raises StepFailed and KubeError."""
    claim = found or await _create(client, step)
    owner = claim.metadata.controller if claim is not None else None
    if claim is None or owner is None or owner.uid != step.pod_uid or claim.metadata.deletion_timestamp:
        raise StepFailed(f"ResourceClaim {step.namespace}/{step.claim} exists and is not the claim of this pod")
    return claim


async def _create(client: Client, step: AllocateClaim) -> dra.ResourceClaim | None:
    assert step.extended is not None
    body = claim_manifest(f"{step.namespace}/{step.claim}", step.pod, step.pod_uid, step.extended["requests"])
    try:
        made = await client.create(kinds.RESOURCECLAIM, body, step.namespace, type=dra.ResourceClaim)
    except AlreadyExists:
        made = await read(client, kinds.RESOURCECLAIM, step.claim, step.namespace, dra.ResourceClaim)
    claim: dra.ResourceClaim | None = made
    return claim


async def state_in_pod(client: Client, step: AllocateClaim) -> None:
    """Write the name of the claim and the requests of each container to the pod's status. Raises KubeError."""
    assert step.extended is not None
    stated = {"resourceClaimName": step.claim, "requestMappings": step.extended["mappings"]}
    body = {"metadata": {"uid": step.pod_uid}, "status": {"extendedResourceClaimStatus": stated}}
    await client.patch(kinds.POD, step.pod, body, step.namespace, "merge", "status")


async def delete_extended(client: Client, claim: dra.ResourceClaim) -> None:
    """Delete a claim, so that its devices are free. Raises KubeError."""
    meta = claim.metadata
    left = [f for f in meta.finalizers or () if f != dra.FINALIZER]
    if len(left) != len(meta.finalizers or ()):
        body = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": left or None}}
        await client.patch(kinds.RESOURCECLAIM, meta.name, body, meta.namespace, "merge")
    try:
        await client.delete(kinds.RESOURCECLAIM, meta.name, meta.namespace, uid=meta.uid)
    except NotFound:
        return
