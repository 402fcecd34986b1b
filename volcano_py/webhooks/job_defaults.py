"""Defaults of Jobs. Volcano: /jobs/mutate.

Volcano writes all defaults into the object. `mutate_job` writes only those that clients must see, and none into the
tasks of a Job whose tasks have names: `spec.tasks` is a list, which kubectl apply compares as a whole, so that a
default in it would be removed by each apply of an unchanged file. `defaulted_job` has all of them; rules compare Jobs
by it, and the controllers and the scheduler treat absent fields of tasks as their defaults.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.api import batch, names
from volcano_py.api.scheduling import DEFAULT_QUEUE
from volcano_py.webhooks.lookup import Manifest

NEEDS_SVC = ("tensorflow", "mpi", "pytorch", "ray")
HOST_NETWORK_DNS = "ClusterFirstWithHostNet"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def mutate_job(
    job: Manifest, scheduler_name: str = names.SCHEDULER_NAME, old: Manifest | None = None
) -> dict[str, Any]:
    """The Job as it is stored: a new one, or the update of `old`; the arguments are not changed."""
    mutated = copy.deepcopy(dict(job))
    spec = mutated.setdefault("spec", {})
    before = (old or {}).get("spec") or {}
    spec["queue"] = spec.get("queue") or before.get("queue") or DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or before.get("schedulerName") or scheduler_name
    spec["maxRetry"] = spec.get("maxRetry") or batch.DEFAULT_MAX_RETRY
    tasks = spec.get("tasks") or ()
    name_tasks(tasks)
    # In an update 0 is a value: a Job can give up its minimum.
    unset = not spec.get("minAvailable") if old is None else spec.get("minAvailable") is None
    if unset or (old is not None and _follows_its_tasks(mutated, old)):
        spec["minAvailable"] = sum(map(minimum_of, tasks))
    add_needed_plugins(spec.get("plugins"))
    return mutated


def defaulted_job(job: Manifest, scheduler_name: str = names.SCHEDULER_NAME) -> dict[str, Any]:
    """The Job with all defaults, as Volcano stores it."""
    mutated = mutate_job(job, scheduler_name)
    for task in mutated["spec"].get("tasks") or ():
        default_task(task)
    return mutated


def name_tasks(tasks: Sequence[dict[str, Any]]) -> None:
    for index, task in enumerate(tasks):
        task["name"] = task.get("name") or f"{batch.DEFAULT_TASK_NAME}{index}"


def default_task(task: dict[str, Any]) -> None:
    """Set the defaults of a task, except for its name."""
    pod = (task.get("template") or {}).get("spec") or {}
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = HOST_NETWORK_DNS
    task["minAvailable"] = minimum_of(task)
    task["maxRetry"] = task.get("maxRetry") or batch.DEFAULT_MAX_RETRY


def minimum_of(task: Mapping[str, Any]) -> int:
    """`minAvailable` of a task, or its default: its minimum of partitions, else its replicas."""
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    partition = task.get("partitionPolicy") or {}
    if partition.get("minPartitions", 0) > 0:
        return int(partition["minPartitions"] * partition.get("partitionSize", 0))
    return int(task.get("replicas") or 0)


def add_needed_plugins(plugins: Any) -> None:
    if plugins is None:
        return
    if any(name in plugins for name in NEEDS_SVC):
        plugins.setdefault("svc", [])
    if "mpi" in plugins:
        plugins.setdefault("ssh", [])


def _follows_its_tasks(job: Manifest, old: Manifest) -> bool:
    """Whether `minAvailable` is a default that the old tasks had, so that it changes with them.

    A value that the user wrote stays. The client's own record decides: the last applied configuration of kubectl
    apply, else the fields of server-side apply. Other clients see the value and may change it.
    """
    before, spec = old.get("spec") or {}, job["spec"]
    least = before.get("minAvailable")
    if spec.get("minAvailable") != least or least != sum(map(minimum_of, before.get("tasks") or ())):
        return False
    return _is_stated(job) is False


def _is_stated(job: Manifest) -> bool | None:
    """Whether the user wrote `spec.minAvailable`; None: unknown."""
    metadata = job.get("metadata") or {}
    text = (metadata.get("annotations") or {}).get(LAST_APPLIED)
    if text:
        try:
            return bool(json.loads(text)["spec"].get("minAvailable"))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
    applied = [
        (entry.get("fieldsV1") or {}).get("f:spec")
        for entry in metadata.get("managedFields") or ()
        if entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    specs = [fields for fields in applied if fields]
    return any("f:minAvailable" in fields for fields in specs) if specs else None
