"""Job plugins: what a job's `spec.plugins` adds to its pods, and makes beside them.

A plugin is a class with `name`, made from its arguments, and four hooks: `on_pod_create` changes a pod
manifest before it is made; `on_job_add`, `on_job_update` and `on_job_delete` say which objects to make, keep
up to date and take away. The hooks have no memory: each call stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from volcano_py.api.batch import Job, JobStatus, Task
from volcano_py.controllers.instructions import Instruction
from volcano_py.controllers.job.observed import Unready
from volcano_py.controllers.job.plugins.base import JobPlugin
from volcano_py.controllers.job.plugins.env import Env
from volcano_py.controllers.job.plugins.hcclrank import HcclRank
from volcano_py.controllers.job.plugins.mpi import Mpi
from volcano_py.controllers.job.plugins.pytorch import Pytorch
from volcano_py.controllers.job.plugins.ray import Ray
from volcano_py.controllers.job.plugins.ssh import Ssh
from volcano_py.controllers.job.plugins.svc import Svc
from volcano_py.controllers.job.plugins.tensorflow import Tensorflow

_PLUGINS: tuple[type[JobPlugin], ...] = (Env, Svc, Ssh, Tensorflow, Mpi, Pytorch, Ray, HcclRank)

REGISTRY: dict[str, Callable[[Sequence[str]], JobPlugin]] = {plugin.name: plugin for plugin in _PLUGINS}
"""Plugin name to what makes it from its arguments, in the order in which they change pods."""


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
