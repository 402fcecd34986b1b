"""Admission of Jobs: validation. Volcano: /jobs/validate. Defaults are in `job_defaults`.

Functions over plain manifests, independent of HTTP. Validation returns all problems, one message each; an empty list
means that the request is allowed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from volcano_py.api import batch, names
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.webhooks import identifiers
from volcano_py.webhooks.dependencies import order
from volcano_py.webhooks.job_defaults import NEEDS_SVC, add_needed_plugins, default_task, name_tasks
from volcano_py.webhooks.job_plugins import argument, known_plugins
from volcano_py.webhooks.lookup import Manifest, Queues, about, state_of
from volcano_py.webhooks.policies import check_policies
from volcano_py.webhooks.tasks import check_new_size, check_tasks

MUTABLE = "`minAvailable`, `tasks[*].replicas`, `tasks[*].minAvailable` and `priorityClassName`"


def validate_job_create(job: Manifest, queues: Queues, *, pod_level_resources: bool = True) -> list[str]:
    """Problems of a new Job. `pod_level_resources` is the API server's feature gate PodLevelResources."""
    return about("job", job, _problems_of_new(job, queues, pod_level_resources))


def _problems_of_new(job: Manifest, queues: Queues, pod_level_resources: bool) -> Iterator[str]:
    spec = job.get("spec") or {}
    tasks = spec.get("tasks") or []
    if not tasks:
        yield "spec.tasks: Required value: No task specified in job spec; add at least one"
        return
    if problem := _check_mpi(spec, tasks):
        yield problem
        return
    yield from check_topologies(spec)
    yield from check_tasks(job, tasks, pod_level_resources)
    yield from _check_job(job, spec, tasks)
    yield from _check_volumes(spec.get("volumes") or ())
    yield from _check_queue(spec.get("queue") or "", queues)
    yield from _check_dependencies(tasks)


def validate_job_update(old: Manifest, new: Manifest, scheduler_name: str = names.SCHEDULER_NAME) -> list[str]:
    """Problems of an updated Job: only its size and priority class may change. Defaults are no change."""
    before, spec = old.get("spec") or {}, new.get("spec") or {}
    before = {**before, "schedulerName": before.get("schedulerName") or scheduler_name}
    spec = {**spec, "schedulerName": spec.get("schedulerName") or before["schedulerName"]}
    return about("job", new, _problems_of_change(before, spec))


def _problems_of_change(before: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    tasks = spec.get("tasks") or []
    for index, task in enumerate(tasks):
        yield from check_new_size(task, index)
    minimum, total = spec.get("minAvailable", 0), _total_replicas(tasks)
    if minimum < 0:
        yield f"spec.minAvailable: Invalid value: {minimum}: job 'minAvailable' must be >= 0"
    if minimum > total:
        yield (
            f"spec.minAvailable: Invalid value: {minimum}: job 'minAvailable' must not be greater than total replicas; "
            f"they are {total}"
        )
    yield from check_topologies(spec)
    count = len(before.get("tasks") or [])
    if len(tasks) != count:
        yield (
            f"spec.tasks: Forbidden: job updates may not add or remove tasks: there were {count}, now {len(tasks)}; "
            "create a new Job"
        )
    elif changed := _changed(_fixed_part(before), _fixed_part(spec)):
        yield (
            f"spec: Forbidden: job updates may not change fields other than {MUTABLE}: {', '.join(changed)} changed; "
            "create a new Job"
        )


def check_topologies(spec: Mapping[str, Any]) -> Iterator[str]:
    """A tier is set by number or by name, not both; for the Job and for the partitions of each task."""
    places = [("spec.networkTopology", spec.get("networkTopology"))]
    for index, task in enumerate(spec.get("tasks") or ()):
        policy = task.get("partitionPolicy") or {}
        places.append((f"spec.tasks[{index}].partitionPolicy.networkTopology", policy.get("networkTopology")))
    for path, topology in places:
        yield from check_topology(path, topology)


def check_topology(path: str, topology: Mapping[str, Any] | None) -> Iterator[str]:
    if topology and topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        allowed, name = topology["highestTierAllowed"], topology["highestTierName"]
        yield (
            f"{path}: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously; "
            f"keep one of {allowed} and {name!r}"
        )


def _check_mpi(spec: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> str:
    plugins = spec.get("plugins") or {}
    if "mpi" not in plugins:
        return ""
    master = argument(plugins["mpi"] or (), "master", "master")
    if any(task.get("name") == master for task in tasks):
        return ""
    return (
        f"spec.plugins.mpi: The specified mpi master task was not found: no task is named {master!r}; "
        "add a task with this name, or set --master=<task> to an existing one"
    )


def _check_job(job: Manifest, spec: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    name = (job.get("metadata") or {}).get("name", "")
    if problem := identifiers.qualified_name(name):
        yield f"metadata.name: Invalid value: {name!r}: create job with name {name} validate failed: {problem}"
    yield from _check_service_names(name, spec, tasks)
    minimum, total = spec.get("minAvailable", 0), _total_replicas(tasks)
    if total < minimum:
        yield (
            f"spec.minAvailable: Invalid value: {minimum}: job 'minAvailable' should not be greater than "
            f"total replicas in tasks; they are {total}"
        )
    if problem := check_policies(spec.get("policies"), "spec.policies"):
        yield problem
    for plugin in spec.get("plugins") or {}:
        if plugin not in known_plugins():
            valid = ", ".join(sorted(known_plugins()))
            yield f"spec.plugins: unable to find job plugin: {plugin}; valid plugins are {valid}"


def _check_service_names(name: str, spec: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The plugin svc creates a Service with the Job's name, and pods with host names; ray another Service."""
    plugins = spec.get("plugins") or {}
    if "svc" not in plugins and not any(plugin in plugins for plugin in NEEDS_SVC):
        return
    service = f"{name}-head-svc" if "ray" in plugins else name
    if problem := identifiers.service_name(service):
        yield (
            f"metadata.name: Invalid value: {name!r}: the plugin svc creates a Service {service!r}, whose name is "
            f"invalid: it {problem}; use another name for the job, or remove the plugin"
        )
        return
    for index, task in enumerate(tasks):
        host = f"{name}-{task.get('name', '')}-{max(task.get('replicas', 0) - 1, 0)}"
        if len(host) > 63:
            yield (
                f"spec.tasks[{index}].name: Invalid value: {task.get('name', '')!r}: the plugin svc gives pods the "
                f"host name {host}, which must be no more than 63 characters; shorten the name of the job or the task"
            )


def _check_volumes(volumes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    paths = set[str]()
    for index, volume in enumerate(volumes):
        at = f"spec.volumes[{index}]"
        mount, name, claim = volume.get("mountPath"), volume.get("volumeClaimName"), volume.get("volumeClaim")
        if not mount:
            yield f"{at}.mountPath: Required value: mountPath is required; set the path in the container"
        elif mount in paths:
            yield f"{at}.mountPath: Duplicate value: duplicated mountPath: {mount}; use unique mount paths"
        paths.add(mount or "")
        if not name and claim is None:
            yield f"{at}: Required value: either VolumeClaim or VolumeClaimName must be specified"
        elif name and claim is not None:
            yield f"{at}: conflict: VolumeClaimName uses an existing claim, VolumeClaim creates one; keep one"
        elif name and (problem := identifiers.dns_subdomain(name)):
            yield f"{at}.volumeClaimName: Invalid value: {name!r}: invalid VolumeClaimName {name}: {problem}"


def _check_queue(name: str, queues: Queues) -> Iterator[str]:
    queue = queues.get(name)
    at = f"spec.queue: Invalid value: {name!r}"
    if queue is None:
        yield f"{at}: unable to find job queue: queue {name!r} not found; create it, or use another queue"
    elif state_of(queue) != QUEUE_OPEN:
        state = state_of(queue)
        yield (
            f"{at}: can only submit job to queue with state `Open`, queue `{name}` status is `{state}`; "
            f"open it (vcctl queue operate -a open -n {name}), or use another queue"
        )
    elif name == ROOT_QUEUE:
        yield f"{at}: can not submit job to root queue; use one of its descendants"
    elif problem := identifiers.label_value(name):
        yield f"{at}: pods have the label volcano.sh/queue-name, which the name of this queue cannot be: it {problem}"
    elif children := queues.children(name):
        some = ", ".join(sorted(child["metadata"]["name"] for child in children)[:5])
        yield (
            f"{at}: can only submit job to leaf queue, queue `{name}` has {len(children)} child queues; "
            f"use a leaf queue below it, such as {some}"
        )


def dependency_order(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The task names in topological order, without the tasks whose dependencies can never be met."""
    return order({task.get("name", ""): (task.get("dependsOn") or {}).get("name") or () for task in tasks})


def _check_dependencies(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    ordered = set(dependency_order(tasks))
    stuck = list(dict.fromkeys(name for task in tasks if (name := task.get("name", "")) not in ordered))
    if stuck:
        yield (
            "spec.tasks: Invalid value: job has dependencies between tasks, but doesn't form a directed acyclic "
            f"graph(DAG): check dependsOn of {', '.join(stuck)}: it may list other tasks of this job, each once, "
            "that do not depend on the task itself"
        )


def _total_replicas(tasks: Sequence[Mapping[str, Any]]) -> int:
    return sum(task.get("replicas", 0) for task in tasks)


def _fixed_part(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without the mutable fields; absent and empty values are equal, and equal to their defaults."""
    fixed: dict[str, Any] = copy.deepcopy(dict(spec))
    fixed["queue"] = fixed.get("queue") or DEFAULT_QUEUE
    fixed["maxRetry"] = fixed.get("maxRetry") or batch.DEFAULT_MAX_RETRY
    name_tasks(fixed.get("tasks") or ())
    add_needed_plugins(fixed.get("plugins"))
    fixed.pop("minAvailable", None)
    fixed.pop("priorityClassName", None)
    # a plugin without arguments differs from an absent plugin
    fixed["plugins"] = sorted([name, *(given or ())] for name, given in (fixed.get("plugins") or {}).items())
    for task in fixed.get("tasks") or ():
        default_task(task)
        task.pop("replicas", None)
        task.pop("minAvailable", None)
    for volume in fixed.get("volumes") or ():
        if volume.get("volumeClaim") is not None:
            volume.pop("volumeClaimName", None)  # the controller fills it in
    plain: dict[str, Any] = _without_empty(fixed)
    return plain


def _is_set(key: str, entry: Any) -> bool:
    if key in _POINTERS:
        return entry is not None
    return entry not in (None, "", 0, False, [], {})


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The paths of the fields that differ; tasks and volumes by index."""
    found = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key in ("tasks", "volumes") and isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                fields = [field for field in sorted({*one, *other}) if one.get(field) != other.get(field)]
                found += [f"spec.{key}[{index}].{field}" for field in fields]
        else:
            found.append(f"spec.{key}")
    return found


_POINTERS = frozenset(
    (
        "ttlSecondsAfterFinished",
        "minSuccess",
        "highestTierAllowed",
        "terminationGracePeriodSeconds",
        "automountServiceAccountToken",
        "enableServiceLinks",
        "shareProcessNamespace",
        "setHostnameAsFQDN",
        "hostUsers",
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "fsGroup",
        "privileged",
        "allowPrivilegeEscalation",
        "readOnlyRootFilesystem",
        "tolerationSeconds",
        "priority",
        "optional",
        "emptyDir",
    )
)
"""Fields of which 0, false or {} differs from an absent field (pointers in the types of Kubernetes and Volcano)."""


def _without_empty(value: Any) -> Any:
    """The value without empty fields: clients that read and write a whole Job may omit them."""
    if isinstance(value, dict):
        cleaned = {key: _without_empty(entry) for key, entry in value.items()}
        return {key: entry for key, entry in cleaned.items() if _is_set(key, entry)}
    if isinstance(value, list):
        return [_without_empty(entry) for entry in value]
    return value
