"""The PodGroup of a Job: the requirements of its gang. Volcano: createOrUpdatePodGroup."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from volcano_py.api import names
from volcano_py.api.batch import Job, Task
from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import PODGROUP
from volcano_py.api.meta import LabelSelector
from volcano_py.api.scheduling import NetworkTopology, PodGroup, PodGroupSpec, SubGroupPolicy
from volcano_py.controllers import quota
from volcano_py.controllers.instructions import Create, Emit, Instruction, Patch
from volcano_py.controllers.job.dependencies import waiting_tasks
from volcano_py.controllers.job.observed import Observed, Unready
from volcano_py.controllers.job.pods import owner_reference, podgroup_name
from volcano_py.controllers.job.state import total_minimum

BLAME = "PodGroupError"


def keep_podgroup(seen: Observed) -> list[Instruction]:
    """Create the PodGroup, or update it to match the Job.

    Tasks that wait for others do not count yet. Queue, topology, labels and annotations are only set on creation. Only
    fields that differ are patched, because the scheduler writes the status of the same object. Raises Unready for
    invalid quantities in requests, and if a PodGroup with the name exists that the Job does not control.
    """
    job = seen.job
    try:
        return _kept(seen, job)
    except (ValueError, TypeError, AttributeError) as error:
        why = f"the resources of the pods are invalid: {error}; correct resources in spec.tasks[].template.spec"
        raise Unready(BLAME, why) from error


def _kept(seen: Observed, job: Job) -> list[Instruction]:
    if seen.foreign_podgroup:
        why = f"PodGroup {seen.foreign_podgroup} exists and this Job does not control it: delete the PodGroup"
        raise Unready(BLAME, why, from_outside=True)
    if waiting := waiting_tasks(job, seen.pods):
        job = without_tasks(job, waiting)
    missing = _missing_classes(job, seen.priorities)
    if seen.podgroup is None:
        return [*missing, Create(PODGROUP, build_podgroup(job, seen.priorities), BLAME)]
    changes = _changes(job, seen.podgroup, seen.priorities)
    if not changes:
        return missing
    metadata = seen.podgroup.metadata
    patch = Patch(PODGROUP, metadata.namespace, metadata.name, {"spec": changes}, uid=metadata.uid, blame=BLAME)
    return [*missing, patch]


def _missing_classes(job: Job, priorities: Mapping[str, int]) -> list[Instruction]:
    """One Event about PriorityClasses that do not exist; no pod can be created before they do."""
    used = [job.spec.priority_class_name, *(_pod_spec(task).get("priorityClassName") for task in job.spec.tasks or ())]
    missing = sorted({name for name in used if name and name not in priorities})
    if not missing:
        return []
    listed = ", ".join(missing)
    message = f"PriorityClass {listed} does not exist: create it, or create the job with another priorityClassName"
    return [Emit("Warning", "MissingPriorityClass", message, once=True)]


def without_tasks(job: Job, names_: Set[str]) -> Job:
    """The Job with a minimum of 0 for these tasks: what its gang needs before they may start."""
    tasks = job.spec.tasks or []
    least = job.spec.min_available
    if least >= total_minimum(job.spec):
        least -= sum(_own_minimum(task) for task in tasks if task.name in names_)
    least = min(least, sum(task.replicas for task in tasks if task.name not in names_))
    kept = [_without_minimum(task) if task.name in names_ else task for task in tasks]
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=kept, min_available=least))


def _without_minimum(task: Task) -> Task:
    policy = task.partition_policy
    if policy is not None:
        policy = msgspec.structs.replace(policy, min_partitions=0)
    return msgspec.structs.replace(task, min_available=0, replicas=0, partition_policy=policy)


def _own_minimum(task: Task) -> int:
    return task.replicas if task.min_available is None else task.min_available


def controls(job: Job, podgroup: PodGroup) -> bool:
    """Whether the Job controls this PodGroup: the name alone is not sufficient."""
    controller = podgroup.metadata.controller
    return controller is not None and controller.uid == job.metadata.uid


def build_podgroup(job: Job, priorities: Mapping[str, int]) -> dict[str, Any]:
    """The manifest of a new PodGroup."""
    spec = PodGroupSpec(
        min_member=job.spec.min_available,
        min_task_member=_min_task_member(job),
        queue=job.spec.queue,
        priority_class_name=job.spec.priority_class_name,
        min_resources=dict(min_resources(job, priorities)),
        network_topology=_topology(job.spec.network_topology),
        sub_group_policy=sub_groups(job),
    )
    manifest = to_manifest(PodGroup(spec=spec))
    manifest["spec"]["queue"] = job.spec.queue
    manifest["metadata"] = {
        "name": podgroup_name(job),
        "namespace": job.metadata.namespace,
        "labels": job.metadata.labels or {},
        "annotations": job.metadata.annotations or {},
        "ownerReferences": [owner_reference(job)],
    }
    manifest.pop("status")
    return manifest


def _changes(job: Job, podgroup: PodGroup, priorities: Mapping[str, int]) -> dict[str, Any]:
    """The fields of the spec that differ, as a merge patch."""
    old = podgroup.spec
    changes: dict[str, Any] = {}
    if old.priority_class_name != job.spec.priority_class_name:
        changes["priorityClassName"] = job.spec.priority_class_name
    if old.min_member != job.spec.min_available:
        changes["minMember"] = job.spec.min_available
    wanted = min_resources(job, priorities)
    if not quota.same(old.min_resources, wanted):
        gone = {name: None for name in old.min_resources or {} if name not in wanted}
        changes["minResources"] = gone | wanted
    members = {
        task: number
        for task, number in _min_task_member(job).items()
        if (old.min_task_member or {}).get(task) != number
    }
    if members:
        changes["minTaskMember"] = members
    groups = sub_groups(job)
    if (old.sub_group_policy or None) != groups:
        changes["subGroupPolicy"] = msgspec.to_builtins(groups) if groups else None
    return changes


def _min_task_member(job: Job) -> dict[str, int]:
    members = {}
    for task in job.spec.tasks or ():
        policy = task.partition_policy
        if task.min_available is not None:
            members[task.name] = task.min_available
        elif policy is not None and policy.min_partitions and policy.partition_size:
            members[task.name] = policy.min_partitions * policy.partition_size
        else:
            members[task.name] = task.replicas
    return members


def sub_groups(job: Job) -> list[SubGroupPolicy] | None:
    """One policy for each task with partitions."""
    return [
        SubGroupPolicy(
            name=task.name,
            sub_group_size=task.partition_policy.partition_size,
            min_sub_groups=task.partition_policy.min_partitions,
            label_selector=LabelSelector(match_labels={names.TASK_SPEC: task.name}),
            match_label_keys=[names.PARTITION_ID],
            network_topology=_topology(task.partition_policy.network_topology),
        )
        for task in job.spec.tasks or ()
        if task.partition_policy is not None
    ] or None


def _topology(topology: NetworkTopology | None) -> NetworkTopology | None:
    """A copy; if both a tier and its name are set, the tier applies."""
    if topology is None:
        return None
    name = topology.highest_tier_name if topology.highest_tier_allowed is None else ""
    return msgspec.structs.replace(topology, highest_tier_name=name)


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """Quota usage of the gang: minAvailable pods, those with high priority first."""
    tasks = by_priority(job.spec.tasks or [], priorities)
    left = job.spec.min_available
    taken = dict.fromkeys(range(len(tasks)), 0)
    if left >= total_minimum(job.spec):
        # The gang contains every task's own minimum; the remainder is filled by priority.
        for index, task in enumerate(tasks):
            taken[index] = max(0, min(_own_minimum(task), left))
            left -= taken[index]
    for index, task in enumerate(tasks):
        more = max(0, min(task.replicas - taken[index], left))
        taken[index] += more
        left -= more
    return quota.total((quota.usage(_pod_spec(task)), taken[index]) for index, task in enumerate(tasks))


def by_priority(tasks: list[Task], priorities: Mapping[str, int]) -> list[Task]:
    """Tasks with high priority first, otherwise in the order of the Job."""
    return sorted(tasks, key=lambda task: -priorities.get(_class_of(task), 0))


def _class_of(task: Task) -> str:
    name: str = _pod_spec(task).get("priorityClassName") or ""
    return name


def _pod_spec(task: Task) -> dict[str, Any]:
    return (task.template or {}).get("spec") or {}
