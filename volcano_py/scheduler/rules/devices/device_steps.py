"""The writes to the claims of a pod before it is bound. kube-scheduler: DynamicResources, PreBind."""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.api import dra
from volcano_py.scheduler.model.claims.resource_claims import ClaimDemand, PodClaim
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, AwaitDevices, PreBindStep
from volcano_py.scheduler.model.jobs.task import Task


def device_steps(
    cluster: Cluster, task: Task, demand: ClaimDemand, decided: Mapping[str, dra.JsonMap], timeout: float
) -> list[PreBindStep]:
    """The writes to the claims of a pod before it is bound. `decided`: allocations by claim; `timeout`: the seconds for
    which the bind waits for binding conditions of devices."""
    written = {claim.key: cluster.claims.resource_claims.allocation(claim.key) for claim in demand.claims}
    found: list[PreBindStep] = []
    for claim in demand.claims:
        if claim.extended is None or written[claim.key] is not None or claim.key in decided:
            allocation = decided.get(claim.key)
            found.append(allocation_step(task, claim, allocation if written[claim.key] is None else None))
    for claim in demand.claims:
        if dra.has_binding_conditions(written[claim.key] or decided.get(claim.key)):
            step = allocation_step(task, claim, None)
            found.append(AwaitDevices(step.namespace, step.claim, step.uid, timeout))
    return found


def allocation_step(task: Task, claim: PodClaim, allocation: dra.JsonMap | None) -> AllocateClaim:
    """The write to a claim before its pod is bound. `allocation`: None if the claim is allocated already."""
    name, uid = claim.key.partition("/")[2], claim.claim.metadata.uid if claim.claim is not None else ""
    extended: dra.JsonMap | None = None
    if claim.extended is not None and claim.claim is not None:
        stored = {r.name for r in claim.claim.spec.devices.requests or ()}
        extended = claim.extended.part({r["request"] for r in dra.results(allocation)} or stored)
    return AllocateClaim(task.namespace, name, uid, task.name, task.uid, allocation, extended=extended)
