"""Job plugins: the changes that a Job's `spec.plugins` make to its pods, and the additional objects they create.

A plugin is a class with `name` that is constructed from its arguments, with four hooks: `on_pod_create` changes a pod
manifest before the pod is created; `on_job_add`, `on_job_update` and `on_job_delete` return the objects to create,
update and delete. The hooks are stateless.

Additional plugins are entry points of the group `volcano_py.job_plugins`; they run after the eight of Volcano.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from volcano_py.api.batch import Job, JobStatus, Task
from volcano_py.controllers.instructions import Emit, Instruction
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
from volcano_py.webhooks.job_plugins import GROUP

_PLUGINS: tuple[type[JobPlugin], ...] = (Env, Svc, Ssh, Tensorflow, Mpi, Pytorch, Ray, HcclRank)

Maker = Callable[[Sequence[str]], JobPlugin]
log = logging.getLogger(__name__)


@cache
def registry() -> dict[str, Maker]:
    """Plugin name to constructor, in the order in which the plugins change pods.

    An entry point that fails to load, or has the name of another plugin, is logged; Jobs that use it get an Event that
    it is not available.
    """
    found: dict[str, Maker] = {plugin.name: plugin for plugin in _PLUGINS}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            made = point.load()
        except Exception as error:
            log.error("job plugin %s (%s) cannot be loaded: %r", point.name, point.value, error)
            continue
        if point.name in found:
            log.error("job plugin %s (%s): the name is already used; rename it", point.name, point.value)
            continue
        found[point.name] = made
    return found


def of(job: Job) -> Iterator[JobPlugin]:
    """The plugins of a Job in the order of the registry. Raises Unready for an unknown plugin."""
    given = job.spec.plugins or {}
    known = registry()
    for name in given:
        if name not in known:
            raise Unready("PluginError", f"job plugin {name!r} is not available; valid plugins are {', '.join(known)}")
    for name, make in known.items():
        if name in given:
            with _blamed(name):
                plugin = make(given[name] or ())
            yield plugin


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    """An exception of a plugin blocks only its Job, and is reported on the Job."""
    try:
        yield
    except Unready:
        raise
    except Exception as error:
        raise Unready("PluginError", f"job plugin {name}: {type(error).__name__}: {error}") from error


def on_pod_create(pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
    for plugin in of(job):
        with _blamed(plugin.name):
            plugin.on_pod_create(pod, job, task, index)


def note(job: Job, status: JobStatus) -> None:
    """Record in the status that the Job's plugins may have objects: `on_job_delete` deletes recorded objects."""
    names = [name for name in registry() if name in (job.spec.plugins or {})]
    if names:
        noted = {f"plugin-{name}": name for name in names}
        status.controlled_resources = {**(status.controlled_resources or {}), **noted}


def on_job_add(job: Job, status: JobStatus) -> list[Instruction]:
    """The objects that plugins create for a Job that is about to start; recorded in the status."""
    instructions: list[Instruction] = []
    for plugin in of(job):
        # From `Flags`; not every plugin has arguments.
        if problem := getattr(plugin, "problem", ""):
            message = f"job plugin {plugin.name}: {problem}"
            instructions.append(Emit("Warning", "PluginArguments", message, once=True, topic=plugin.name))
        with _blamed(plugin.name):
            instructions += plugin.on_job_add(job)
        if status.controlled_resources is None:
            status.controlled_resources = {}
        status.controlled_resources[f"plugin-{plugin.name}"] = plugin.name
    return instructions


def on_job_update(job: Job) -> list[Instruction]:
    instructions: list[Instruction] = []
    for plugin in of(job):
        with _blamed(plugin.name):
            instructions += plugin.on_job_update(job)
    return instructions


def on_job_delete(job: Job, status: JobStatus) -> list[Instruction]:
    """The objects that plugins delete after all pods have ended: only those recorded in the status.

    A plugin that is missing or raises does not block the end of a Job: its objects are deleted with the Job.
    """
    noted = status.controlled_resources or {}
    given, known = job.spec.plugins or {}, registry()
    instructions: list[Instruction] = []
    for name in known:
        if name in given and noted.pop(f"plugin-{name}", None) is not None:
            try:
                instructions += known[name](given[name] or ()).on_job_delete(job)
            except Exception as error:
                log.error("job %s: plugin %s failed; its objects are deleted with the job: %r", job.key, name, error)
    status.controlled_resources = noted or None
    return instructions
