"""Native gangs: PodGroups of scheduling.k8s.io as jobs. Kubernetes: GenericWorkload and GangScheduling.

The job of a native PodGroup is like any other: a PodGroup of Volcano is derived from the native one and exists only in
the model. The conditions that a session reports are written to the native PodGroup.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from volcano_py.api import gang, names
from volcano_py.api.core import Namespace
from volcano_py.api.meta import Condition
from volcano_py.api.scheduling import PENDING, PodGroup, PodGroupSpec, PodGroupStatus
from volcano_py.scheduler.model.jobs.group_names import native_uid
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.model_state import ModelState
from volcano_py.scheduler.model.plan import NativeGroupStatus


class NativeGroups:
    """The native PodGroups of a cluster."""

    def __init__(self, cluster: ModelState) -> None:
        self._cluster = cluster
        self._of_namespace: dict[str, set[str]] = {}
        """The UIDs of the jobs of native PodGroups."""

    def put(self, job: Job, group: gang.PodGroup) -> None:
        """Set a job's fields from a native PodGroup. Raises ValueError if one of them is invalid."""
        namespace = group.metadata.namespace
        self._of_namespace.setdefault(namespace, set()).add(job.uid)
        found: Namespace | None = self._cluster.others.get("Namespace", {}).get(namespace)
        set_native_group(job, group, queue_of(group, found) or self._cluster.default_queue)

    def namespace_changed(self, namespace: str) -> None:
        """Called when a Namespace changes, which may change the queue of its jobs."""
        for uid in sorted(self._of_namespace.get(namespace, ())):
            job = self._cluster.jobs.get(uid)
            if job is None or job.native is None:
                self._of_namespace[namespace].discard(uid)
            else:
                self.put(job, job.native)
                self._cluster.job_changes.add(uid)

    def assume(self, operation: NativeGroupStatus) -> None:
        """Count conditions that were sent as written."""
        job = self._cluster.jobs.get(native_uid(f"{operation.namespace}/{operation.name}"))
        if job is not None and job.native is not None and job.native.metadata.uid == operation.uid:
            new = msgspec.convert(operation.conditions, list[Condition])
            types = {condition.type for condition in new}
            kept = [c for c in job.native.status.conditions or () if c.type not in types]
            job.native = replace(job.native, status=gang.PodGroupStatus(conditions=[*kept, *new]))


def queue_of(group: gang.PodGroup, namespace: Namespace | None) -> str:
    """The queue that the PodGroup sets by label or annotation, else that of its namespace, else ""."""
    for meta in (group.metadata, namespace.metadata if namespace is not None else None):
        if meta is not None:
            found = (meta.labels or {}).get(names.QUEUE_NAME) or (meta.annotations or {}).get(names.QUEUE_NAME)
            if found:
                return found
    return ""


def set_native_group(job: Job, group: gang.PodGroup, queue: str) -> None:
    """Derive a job's PodGroup from a native one. Raises ValueError if one of its fields is invalid."""
    spec = group.spec
    policy = spec.scheduling_policy
    if (policy.gang is None) == (policy.basic is None):
        raise ValueError("spec.schedulingPolicy: set exactly one of basic and gang")
    if policy.gang is not None and policy.gang.min_count < 1:
        raise ValueError(f"spec.schedulingPolicy.gang.minCount: {policy.gang.min_count}; use 1 or more")
    constraints = spec.scheduling_constraints
    topology = constraints.topology if constraints is not None else None
    if topology and len(topology) > 1:
        raise ValueError(f"spec.schedulingConstraints.topology: {len(topology)} constraints; use one")
    before = job.native
    same = before is not None and before.metadata.uid == group.metadata.uid
    derived = PodGroup(
        metadata=group.metadata,
        spec=PodGroupSpec(
            min_member=policy.gang.min_count if policy.gang is not None else 1,
            queue=queue,
            priority_class_name=spec.priority_class_name,
        ),
        status=job.pod_group.status if same and job.pod_group is not None else PodGroupStatus(phase=PENDING),
    )
    job.set_pod_group(derived, queue)
    job.native = group
    job.topology_key = spec.topology_key
    job.evicted_whole = spec.evicted_whole
    job.priority = spec.priority


def condition_of(group: gang.PodGroup, type_: str) -> Condition | None:
    """The condition of a type."""
    return next((c for c in group.status.conditions or () if c.type == type_), None)
