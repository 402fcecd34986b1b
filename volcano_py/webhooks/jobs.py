"""Admission of Jobs: defaults, and what a Job may look like. Volcano: /jobs/mutate and /jobs/validate.

Functions over plain manifests, callable without HTTP. Validation returns all that is wrong, one message each;
an empty list means allowed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from volcano_py.api import batch, names
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.webhooks import identifiers
from volcano_py.webhooks.dependencies import order
from volcano_py.webhooks.lookup import Manifest, Queues, state_of
from volcano_py.webhooks.pod_template import check_template
from volcano_py.webhooks.policies import check_policies
from volcano_py.webhooks.resources import amounts, requests_of

PLUGINS = frozenset(("env", "ssh", "svc", "tensorflow", "mpi", "pytorch", "ray", "hcclrank"))
"""The job plugins there are."""

_NEEDS_SVC = ("tensorflow", "mpi", "pytorch", "ray")
MUTABLE = "`minAvailable`, `tasks[*].replicas`, `tasks[*].minAvailable` and `priorityClassName`"


def mutate_job(job: Manifest, scheduler_name: str = names.SCHEDULER_NAME) -> dict[str, Any]:
    """The job with its defaults filled in; the argument is left as it is."""
    mutated = copy.deepcopy(dict(job))
    spec = mutated.setdefault("spec", {})
    spec["queue"] = spec.get("queue") or DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or scheduler_name
    spec["maxRetry"] = spec.get("maxRetry") or batch.DEFAULT_MAX_RETRY
    for index, task in enumerate(spec.get("tasks") or ()):
        _default_task(task, index)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(task["minAvailable"] for task in spec.get("tasks") or ())
    plugins = spec.get("plugins")
    if plugins is not None:
        if any(name in plugins for name in _NEEDS_SVC):
            plugins.setdefault("svc", [])
        if "mpi" in plugins:
            plugins.setdefault("ssh", [])
    return mutated


def _default_task(task: dict[str, Any], index: int) -> None:
    task["name"] = task.get("name") or f"{batch.DEFAULT_TASK_NAME}{index}"
    pod = (task.get("template") or {}).get("spec") or {}
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    if task.get("minAvailable") is None:
        partition = task.get("partitionPolicy") or {}
        if partition.get("minPartitions", 0) > 0:
            task["minAvailable"] = partition["minPartitions"] * partition.get("partitionSize", 0)
        else:
            task["minAvailable"] = task.get("replicas", 0)
    task["maxRetry"] = task.get("maxRetry") or batch.DEFAULT_MAX_RETRY


def validate_job_create(job: Manifest, queues: Queues, *, pod_level_resources: bool = True) -> list[str]:
    """What is wrong with a new job. `pod_level_resources` is the feature gate of the API server."""
    spec = job.get("spec") or {}
    tasks = spec.get("tasks") or []
    if not tasks:
        return ["spec.tasks: No task specified in job spec"]
    if problem := _check_mpi(spec, tasks):
        return [problem]
    return [
        *check_topologies(spec),
        *_check_tasks(job, tasks, pod_level_resources),
        *_check_job(job, spec, tasks),
        *_check_volumes(spec.get("volumes") or ()),
        *_check_queue(spec.get("queue") or "", queues),
        *_check_dependencies(tasks),
    ]


def validate_job_update(old: Manifest, new: Manifest) -> list[str]:
    """What is wrong with a change of a job: little but its size may change."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    tasks = spec.get("tasks") or []
    problems = []
    for task in tasks:
        name = task.get("name", "")
        replicas, minimum = task.get("replicas", 0), task.get("minAvailable")
        if replicas < 0:
            problems.append(f"'replicas' must be >= 0 in task: {name}")
        if minimum is not None and minimum < 0:
            problems.append(f"'minAvailable' must be >= 0 in task: {name}")
        if minimum is not None and minimum > replicas:
            problems.append(f"'minAvailable' must be <= 'replicas' in task: {name}")
        problems.extend(_check_partitions(task))
    if spec.get("minAvailable", 0) < 0:
        problems.append("job 'minAvailable' must be >= 0")
    if spec.get("minAvailable", 0) > _total_replicas(tasks):
        problems.append("job 'minAvailable' must not be greater than total replicas")
    problems.extend(check_topologies(spec))
    if len(tasks) != len(before.get("tasks") or []):
        problems.append("job updates may not add or remove tasks")
    elif _fixed_part(spec) != _fixed_part(before):
        problems.append(f"job updates may not change fields other than {MUTABLE}")
    return problems


def check_topologies(spec: Mapping[str, Any]) -> Iterator[str]:
    """A tier is named by number or by name, for the job and for the partitions of each task."""
    places = [("spec.networkTopology", spec.get("networkTopology"))]
    for index, task in enumerate(spec.get("tasks") or ()):
        policy = task.get("partitionPolicy") or {}
        places.append((f"spec.tasks[{index}].partitionPolicy.networkTopology", policy.get("networkTopology")))
    for path, topology in places:
        yield from check_topology(path, topology)


def check_topology(path: str, topology: Mapping[str, Any] | None) -> Iterator[str]:
    if topology and topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        yield (f"{path}: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously")


def check_topology_policy(task: Mapping[str, Any], index: int) -> Iterator[str]:
    """A NUMA policy needs whole CPUs in every container."""
    if (task.get("topologyPolicy") or "none") == "none":
        return
    pod = (task.get("template") or {}).get("spec") or {}
    for kind in ("containers", "initContainers"):
        for number, container in enumerate(pod.get(kind) or ()):
            cpu = amounts(requests_of(container.get("resources"))).get("cpu", 0)
            if not cpu or cpu.denominator != 1:
                yield f"the cpu request isn't an integer in spec.task[{index}] {kind[:-1]}[{number}]"


def _check_mpi(spec: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> str:
    plugins = spec.get("plugins") or {}
    if "mpi" not in plugins:
        return ""
    master = argument(plugins["mpi"] or (), "master", "master")
    if any(task.get("name") == master for task in tasks):
        return ""
    return f"The specified mpi master task was not found: no task is named {master!r}"


def argument(arguments: Sequence[str], name: str, default: str) -> str:
    """The value of a plugin's flag: `--name=value`, `-name=value` or `--name`, `value`; the last one wins."""
    value = default
    for index, text in enumerate(arguments):
        flag, equals, given = text.lstrip("-").partition("=")
        if text.startswith("-") and flag == name:
            if equals:
                value = given
            elif index + 1 < len(arguments):
                value = arguments[index + 1]
    return value


def _check_tasks(job: Manifest, tasks: Sequence[Mapping[str, Any]], pod_level_resources: bool) -> Iterator[str]:
    job_name = (job.get("metadata") or {}).get("name", "")
    seen = set[str]()
    for index, task in enumerate(tasks):
        name = task.get("name", "")
        minimum = task.get("minAvailable")
        if minimum is not None and minimum > task.get("replicas", 0):
            yield f"'minAvailable' is greater than 'replicas' in task: {name}, job: {job_name}"
        if name in seen:
            yield f"duplicated task name {name}"
            return
        seen.add(name)
        if problem := check_policies(task.get("policies"), f"spec.tasks[{index}].policies"):
            yield problem
        pod_name = f"{job_name}-{name}-{index}"
        if problem := identifiers.qualified_name(pod_name):
            yield f"create pod with name {pod_name} validate failed: {problem}"
        if problem := identifiers.dns_subdomain(name):
            yield f"spec.task[{index}].metadata.name: Invalid value: {name!r}: {problem}"
        template = task.get("template") or {}
        yield from check_template(template, f"spec.task[{index}].template", pod_level_resources)
        yield from check_topology_policy(task, index)
        yield from (f"{problem}, job: {job_name}" for problem in _check_partitions(task))


def _check_partitions(task: Mapping[str, Any]) -> Iterator[str]:
    policy = task.get("partitionPolicy")
    if not policy:
        return
    name = task.get("name", "")
    total, size = policy.get("totalPartitions", 0), policy.get("partitionSize", 0)
    minimum = policy.get("minPartitions", 0)
    if total <= 0:
        yield f"'TotalPartitions' must be greater than 0 in task: {name}"
    if size <= 0:
        yield f"'PartitionSize' must be greater than 0 in task: {name}"
    if task.get("replicas", 0) != total * size:
        yield f"'Replicas' are not equal to TotalPartitions*PartitionSize in task: {name}"
    if minimum > 0 and task.get("minAvailable") not in (None, minimum * size):
        yield f"'MinAvailable' is not equal to MinPartitions*PartitionSize in task: {name}"


def _check_job(job: Manifest, spec: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    name = (job.get("metadata") or {}).get("name", "")
    if problem := identifiers.qualified_name(name):
        yield f"create job with name {name} validate failed: {problem}"
    if _total_replicas(tasks) < spec.get("minAvailable", 0):
        yield "job 'minAvailable' should not be greater than total replicas in tasks"
    if problem := check_policies(spec.get("policies"), "spec.policies"):
        yield problem
    for plugin in spec.get("plugins") or {}:
        if plugin not in PLUGINS:
            yield f"unable to find job plugin: {plugin}; there are {', '.join(sorted(PLUGINS))}"


def _check_volumes(volumes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    paths = set[str]()
    for index, volume in enumerate(volumes):
        at = f"spec.volumes[{index}]"
        mount, name, claim = volume.get("mountPath"), volume.get("volumeClaimName"), volume.get("volumeClaim")
        if not mount:
            yield f"{at}: mountPath is required"
        elif mount in paths:
            yield f"{at}: duplicated mountPath: {mount}"
        paths.add(mount or "")
        if not name and claim is None:
            yield f"{at}: either VolumeClaim or VolumeClaimName must be specified"
        elif name and claim is not None:
            yield f"{at}: conflict: VolumeClaimName uses an existing claim, VolumeClaim makes one; keep one"
        elif name and (problem := identifiers.dns_subdomain(name)):
            yield f"{at}: invalid VolumeClaimName {name}: {problem}"


def _check_queue(name: str, queues: Queues) -> Iterator[str]:
    queue = queues.get(name)
    if queue is None:
        yield f"unable to find job queue: queue {name!r} not found"
    elif state_of(queue) != QUEUE_OPEN:
        state = state_of(queue)
        yield f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`"
    elif name == ROOT_QUEUE:
        yield "can not submit job to root queue"
    elif children := queues.children(name):
        yield f"can only submit job to leaf queue, queue `{name}` has {len(children)} child queues"


def dependency_order(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tasks in an order in which each comes after those it depends on, without those for which there is none."""
    return order({task.get("name", ""): (task.get("dependsOn") or {}).get("name") or () for task in tasks})


def _check_dependencies(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    ordered = set(dependency_order(tasks))
    stuck = list(dict.fromkeys(name for task in tasks if (name := task.get("name", "")) not in ordered))
    if stuck:
        yield (
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): "
            f"look at dependsOn of {', '.join(stuck)}"
        )


def _total_replicas(tasks: Sequence[Mapping[str, Any]]) -> int:
    return sum(task.get("replicas", 0) for task in tasks)


def _fixed_part(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without what may change, and with absent and empty values made the same."""
    fixed: dict[str, Any] = copy.deepcopy(dict(spec))
    fixed.pop("minAvailable", None)
    fixed.pop("priorityClassName", None)
    # a plugin without arguments is not the same as no plugin
    fixed["plugins"] = sorted([name, *(given or ())] for name, given in (fixed.get("plugins") or {}).items())
    for task in fixed.get("tasks") or ():
        task.pop("replicas", None)
        task.pop("minAvailable", None)
    for volume in fixed.get("volumes") or ():
        if volume.get("volumeClaim") is not None:
            volume.pop("volumeClaimName", None)  # the controller fills it in
    plain: dict[str, Any] = _without_empty(fixed)
    return plain


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        cleaned = {key: _without_empty(entry) for key, entry in value.items()}
        return {key: entry for key, entry in cleaned.items() if entry not in (None, "", 0, False, [], {})}
    if isinstance(value, list):
        return [_without_empty(entry) for entry in value]
    return value
