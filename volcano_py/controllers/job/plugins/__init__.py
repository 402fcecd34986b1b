"""Job plugins: what a job's `spec.plugins` adds to its pods, and makes beside them.

A plugin is a class with `name`, made from its arguments, and four hooks: `on_pod_create` changes a pod
manifest before it is made; `on_job_add`, `on_job_update` and `on_job_delete` say which objects to make, keep
up to date and take away. The hooks have no memory: each call stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from volcano_py.api.batch import Job, JobStatus, Task
from volcano_py.controllers.instructions import Instruction
from volcano_py.controllers.job.observed import Unready
from volcano_py.controllers.job.plugins.env import Env
from volcano_py.controllers.job.plugins.svc import Svc


class JobPlugin(Protocol):
    name: str

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None: ...
    def on_job_add(self, job: Job) -> list[Instruction]: ...
    def on_job_update(self, job: Job) -> list[Instruction]: ...
    def on_job_delete(self, job: Job) -> list[Instruction]: ...


REGISTRY: dict[str, Callable[[Sequence[str]], JobPlugin]] = {Env.name: Env, Svc.name: Svc}
"""Plugin name to what makes it from its arguments."""


def of(job: Job) -> Iterator[JobPlugin]:
    """The plugins of a job in the order of the registry. Raises Unready for one that there is not."""
    given = job.spec.plugins or {}
    for name in given:
        if name not in REGISTRY:
            known = ", ".join(REGISTRY)
            raise Unready("PluginError", f"job plugin {name!r} is not available; there are {known}")
    for name, make in REGISTRY.items():
        if name in given:
            yield make(given[name] or ())


def on_pod_create(pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
    for plugin in of(job):
        plugin.on_pod_create(pod, job, task, index)


def on_job_add(job: Job, status: JobStatus) -> list[Instruction]:
    """What the plugins make for a job that is about to start; noted in the status."""
    instructions: list[Instruction] = []
    for plugin in of(job):
        instructions += plugin.on_job_add(job)
        if status.controlled_resources is None:
            status.controlled_resources = {}
        status.controlled_resources[f"plugin-{plugin.name}"] = plugin.name
    return instructions


def on_job_update(job: Job) -> list[Instruction]:
    return [instruction for plugin in of(job) for instruction in plugin.on_job_update(job)]


def on_job_delete(job: Job, status: JobStatus) -> list[Instruction]:
    """What the plugins take away when all pods are ended: only what is noted in the status."""
    noted = status.controlled_resources or {}
    instructions: list[Instruction] = []
    for plugin in of(job):
        if noted.pop(f"plugin-{plugin.name}", None) is not None:
            instructions += plugin.on_job_delete(job)
    status.controlled_resources = noted or None
    return instructions
