"""ResourceClaims that the members of a PodGroup share. Kubernetes: plugins/dynamicresources, with the feature gate
DRAWorkloadResourceClaims.

A claim of a pod that equals one of its group, by name and reference, is reserved for the PodGroup. Members that are
tried together use the devices that were chosen for the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from volcano_py.api import dra
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.model.claims.group_claims import is_shared, reserved_for_group
from volcano_py.scheduler.model.claims.resource_claims import claim_names
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, PreBindStep
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class ClaimedGroups(Protocol):
    """What this module reads of a handle, or of the world."""

    cluster: ProfileCluster
    features: frozenset[str]


GATE = "DRAWorkloadResourceClaims"


def shared_with(world: ClaimedGroups, pod: PodInfo, claim: str) -> PodGroup | None:
    """The pod's group, if the claim (`namespace/name`) is one of the group."""
    group = world.cluster.groups.get(pod.group) if pod.group and GATE in world.features else None
    return group if group is not None and is_shared(group, pod.pod, claim) else None


def to_allocate(world: ClaimedGroups, pod: PodInfo) -> list[str]:
    """The claims of a pod that have no allocation yet, as `namespace/name`."""
    claims = world.cluster.model.claims.resource_claims
    keys = (f"{pod.namespace}/{made}" for _, made in claim_names(pod.pod) if made)
    unallocated = ((key, claims.claim(key)) for key in keys)
    return [key for key, claim in unallocated if claim is not None and claim.status.allocation is None]


def for_group(
    world: ClaimedGroups, pod: PodInfo, step: PreBindStep, allocations: Mapping[str, dra.JsonMap | None]
) -> PreBindStep:
    """The step of a pod's binding, for its group if the claim is shared. Each member writes the same allocation,
    because any of them may be the first. `allocations`: those decided before, by claim."""
    if not isinstance(step, AllocateClaim):
        return step
    key = f"{step.namespace}/{step.claim}"
    group = shared_with(world, pod, key)
    if group is None:
        return step
    allocation = step.allocation if step.allocation is not None else allocations.get(key)
    return reserved_for_group(msgspec.structs.replace(step, allocation=allocation), group, pod.pod)
