"""ResourceClaims that the members of a native PodGroup share. Kubernetes: DRAWorkloadResourceClaims.

A claim of a pod that equals one of its group, by name and reference, is reserved for the PodGroup, once, and not for
each pod.
"""

from __future__ import annotations

import msgspec

from volcano_py.api import core, dra
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, PreBindStep

POD_GROUPS = "podgroups"
"""The resource of a consumer that is a PodGroup."""


def claims_of_group(group: PodGroup) -> list[str]:
    """The claims of a group, as `namespace/name`, as far as they are named."""
    made = {s.name: s.resource_claim_name for s in group.status.resource_claim_statuses or ()}
    names = (e.resource_claim_name or made.get(e.name) for e in group.spec.resource_claims or ())
    return [f"{group.metadata.namespace}/{name}" for name in names if name]


def is_shared(group: PodGroup, pod: core.Pod, claim: str) -> bool:
    """Whether a claim (`namespace/name`) of a pod is one of its group."""
    if claim not in claims_of_group(group):
        return False
    entries = {
        e.name: (e.resource_claim_name, e.resource_claim_template_name) for e in group.spec.resource_claims or ()
    }
    made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims or ():
        reference = (entry.resource_claim_name, entry.resource_claim_template_name)
        name = entry.resource_claim_name or made.get(entry.name)
        if f"{pod.metadata.namespace}/{name}" == claim and entries.get(entry.name) == reference:
            return True
    return False


def reserved_for_group(step: PreBindStep, group: PodGroup, pod: core.Pod) -> PreBindStep:
    """A step before the bind of a pod, for its group if the claim is shared."""
    if not isinstance(step, AllocateClaim) or not is_shared(group, pod, f"{step.namespace}/{step.claim}"):
        return step
    return msgspec.structs.replace(step, group=group.metadata.name, group_uid=group.metadata.uid)


def belongs_to_group(owner_kind: str, owner: str, pod: core.Pod) -> bool:
    """Whether the owner of a claim is the PodGroup that a pod names."""
    group = pod.spec.scheduling_group
    return group is not None and owner_kind == "PodGroup" and owner == group.pod_group_name


def is_reserved_for_group(claim: dra.ResourceClaim, pod: core.Pod) -> bool:
    """Whether a claim is reserved for the PodGroup that a pod names."""
    group = pod.spec.scheduling_group
    consumers = claim.status.reserved_for or ()
    return group is not None and any(c.resource == POD_GROUPS and c.name == group.pod_group_name for c in consumers)
