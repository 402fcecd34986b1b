"""Job plugins: what a job's `spec.plugins` adds to its pods, and makes beside them.

A plugin is a class with `name`, made from its arguments, and four hooks: `on_pod_create` changes a pod
manifest before it is made; `on_job_add`, `on_job_update` and `on_job_delete` say which objects to make, keep
up to date and take away. The hooks have no memory: each call stands for itself.

Further plugins are entry points of the group `volcano_py.job_plugins`; they come after the eight of Volcano.
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
    """Plugin name to what makes it from its arguments, in the order in which they change pods.

    An entry point that cannot be loaded, or takes the name of another, is one line in the log; jobs that name it get
    an Event that it is not available.
    """
    found: dict[str, Maker] = {plugin.name: plugin for plugin in _PLUGINS}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            made = point.load()
        except Exception as error:
            log.error("job plugin %s (%s) cannot be loaded: %r", point.name, point.value, error)
            continue
        if point.name in found:
            log.error("job plugin %s (%s): the name is taken; give it another", point.name, point.value)
            continue
        found[point.name] = made
    return found


def of(job: Job) -> Iterator[JobPlugin]:
    """The plugins of a job in the order of the registry. Raises Unready for one that there is not."""
    given = job.spec.plugins or {}
    known = registry()
    for name in given:
        if name not in known:
            raise Unready("PluginError", f"job plugin {name!r} is not available; there are {', '.join(known)}")
    for name, make in known.items():
        if name in given:
            with _blamed(name):
                plugin = make(given[name] or ())
            yield plugin


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    """A plugin that raises holds up its own job, and the job says so."""
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
    """Write down that there may be objects of the job's plugins: `on_job_delete` takes away what is noted."""
    names = [name for name in registry() if name in (job.spec.plugins or {})]
    if names:
        noted = {f"plugin-{name}": name for name in names}
        status.controlled_resources = {**(status.controlled_resources or {}), **noted}


def on_job_add(job: Job, status: JobStatus) -> list[Instruction]:
    """What the plugins make for a job that is about to start; noted in the status."""
    instructions: list[Instruction] = []
    for plugin in of(job):
        # Of `Flags`; not every plugin has arguments.
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
    """What the plugins take away when all pods are ended: only what is noted in the status.

    A plugin that is not available any more, or raises, does not keep a job from being stopped: what it made goes with
    the job.
    """
    noted = status.controlled_resources or {}
    given, known = job.spec.plugins or {}, registry()
    instructions: list[Instruction] = []
    for name in known:
        if name in given and noted.pop(f"plugin-{name}", None) is not None:
            try:
                instructions += known[name](given[name] or ()).on_job_delete(job)
            except Exception as error:
                log.error("job %s: plugin %s leaves its objects to the end of the job: %r", job.key, name, error)
    status.controlled_resources = noted or None
    return instructions
