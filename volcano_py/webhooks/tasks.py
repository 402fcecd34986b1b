"""Admission of a Job's tasks: sizes, names, templates, partitions, NUMA policy. Volcano: /jobs/validate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from volcano_py.webhooks import identifiers
from volcano_py.webhooks.lookup import Manifest
from volcano_py.webhooks.pod_template import check_template
from volcano_py.webhooks.policies import check_policies
from volcano_py.webhooks.resources import amounts, requests_of


def check_tasks(job: Manifest, tasks: Sequence[Mapping[str, Any]], pod_level_resources: bool) -> Iterator[str]:
    job_name = (job.get("metadata") or {}).get("name", "")
    seen = set[str]()
    for index, task in enumerate(tasks):
        name = task.get("name", "")
        minimum = task.get("minAvailable")
        if minimum is not None and minimum > task.get("replicas", 0):
            yield (
                f"spec.tasks[{index}].minAvailable: Invalid value: {minimum}: 'minAvailable' is greater than "
                f"'replicas' in task: {name}, job: {job_name}; replicas are {task.get('replicas', 0)}"
            )
        if name in seen:
            yield f"spec.tasks[{index}].name: Duplicate value: duplicated task name {name}; use unique task names"
            return
        seen.add(name)
        if problem := check_policies(task.get("policies"), f"spec.tasks[{index}].policies"):
            yield problem
        pod_name = f"{job_name}-{name}-{index}"
        if problem := identifiers.qualified_name(pod_name):
            yield (
                f"spec.tasks[{index}].name: Invalid value: {name!r}: create pod with name {pod_name} validate failed: "
                f"{problem}"
            )
        if problem := identifiers.dns_subdomain(name):
            yield f"spec.task[{index}].metadata.name: Invalid value: {name!r}: {problem}"
        template = task.get("template") or {}
        yield from check_template(template, f"spec.task[{index}].template", pod_level_resources)
        yield from check_topology_policy(task, index)
        yield from _check_partitions(task, index)


def check_new_size(task: Mapping[str, Any], index: int) -> Iterator[str]:
    """Problems of the size of an updated task."""
    at, name = f"spec.tasks[{index}]", task.get("name", "")
    replicas, minimum = task.get("replicas", 0), task.get("minAvailable")
    if replicas < 0:
        yield f"{at}.replicas: Invalid value: {replicas}: 'replicas' must be >= 0 in task: {name}"
    if minimum is not None and minimum < 0:
        yield f"{at}.minAvailable: Invalid value: {minimum}: 'minAvailable' must be >= 0 in task: {name}"
    if minimum is not None and minimum > replicas:
        yield (
            f"{at}.minAvailable: Invalid value: {minimum}: 'minAvailable' must be <= 'replicas' in task: {name}; "
            f"replicas are {replicas}"
        )
    yield from _check_partitions(task, index)


def _check_partitions(task: Mapping[str, Any], index: int) -> Iterator[str]:
    policy = task.get("partitionPolicy")
    if policy is None:
        return
    at, name = f"spec.tasks[{index}]", task.get("name", "")
    total, size = policy.get("totalPartitions", 0), policy.get("partitionSize", 0)
    minimum = policy.get("minPartitions", 0)
    replicas, available = task.get("replicas", 0), task.get("minAvailable")
    inside = f"{at}.partitionPolicy"
    if total <= 0:
        at_total = f"{inside}.totalPartitions: Invalid value: {total}"
        yield f"{at_total}: 'TotalPartitions' must be greater than 0 in task: {name}"
    if size <= 0:
        yield f"{inside}.partitionSize: Invalid value: {size}: 'PartitionSize' must be greater than 0 in task: {name}"
    if replicas != total * size:
        yield (
            f"{at}.replicas: Invalid value: {replicas}: 'Replicas' are not equal to TotalPartitions*PartitionSize "
            f"in task: {name}; set {total * size}"
        )
    if minimum > 0 and available not in (None, minimum * size):
        yield (
            f"{at}.minAvailable: Invalid value: {available}: 'MinAvailable' is not equal to "
            f"MinPartitions*PartitionSize in task: {name}; set {minimum * size}"
        )


def check_topology_policy(task: Mapping[str, Any], index: int) -> Iterator[str]:
    """A NUMA policy needs whole CPUs in every container."""
    if (task.get("topologyPolicy") or "none") == "none":
        return
    pod = (task.get("template") or {}).get("spec") or {}
    for kind in ("containers", "initContainers"):
        for number, container in enumerate(pod.get(kind) or ()):
            cpu = amounts(requests_of(container.get("resources"))).get("cpu", 0)
            if not cpu or cpu.denominator != 1:
                yield (
                    f"spec.tasks[{index}].template.spec.{kind}[{number}].resources.requests.cpu: Invalid value: "
                    f"{float(cpu):g}: the cpu request isn't an integer; topologyPolicy needs whole CPUs"
                )
