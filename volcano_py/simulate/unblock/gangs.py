"""Changes of the gang: fewer members, a wider domain of the network."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from volcano_py.api.meta import ObjectMeta
from volcano_py.api.scheduling import DEFAULT_QUEUE, PodGroup, PodGroupSpec, PodGroupStatus
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource
from volcano_py.simulate.unblock.suggestion import Change
from volcano_py.simulate.unblock.trials import Edit

replace = msgspec.structs.replace


def gang_of(session: Session, job: SessionJob, size: int) -> Change:
    """The job with a smaller minimum."""
    group = job.pod_group
    spec = replace(group.spec, min_member=size, min_task_member=None)
    if group.spec.min_resources is not None:
        minimum = Resource()
        for task in sorted(job.tasks.values(), key=session.orders.task_key)[:size]:
            minimum.add(task.request)
        spec = replace(spec, min_resources=dict(minimum.quantities()))
    edit = Edit("PodGroup", job.namespace, job.name, replace(group, spec=spec))
    text = f"start with at least {size} instead of {job.min_available} pods (minAvailable, minMember)"
    return Change("smaller-gang", text, [edit])


def create_pod_group(uid: str) -> Change:
    """Create the PodGroup that pods refer to."""
    namespace, _, name = uid.partition("/")
    made = PodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodGroupSpec(min_member=1, queue=DEFAULT_QUEUE),
        status=PodGroupStatus(phase="Pending"),
    )
    return Change("create-podgroup", f"create PodGroup {uid}", [Edit("PodGroup", namespace, name, made)])


def wider_domain(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Permit the next tiers of the network, then remove the topology."""
    group = job.pod_group
    topology = group.spec.network_topology
    if topology is not None and job.constraint is not None and job.constraint.tier is not None:
        for tier in (t for t in session.topology.tiers if t > (job.constraint.tier or 0)):
            wider = replace(topology, highest_tier_allowed=tier, highest_tier_name="")
            spec = replace(group.spec, network_topology=wider)
            edit = Edit("PodGroup", job.namespace, job.name, replace(group, spec=spec))
            yield Change("wider-topology", f"allow HyperNodes up to tier {tier}", [edit])
    spec = replace(group.spec, network_topology=None)
    edit = Edit("PodGroup", job.namespace, job.name, replace(group, spec=spec))
    yield Change("wider-topology", "remove spec.networkTopology of the job", [edit])
