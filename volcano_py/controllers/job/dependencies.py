"""Dependencies between the tasks of a Job: which tasks may start, and which wait. Volcano: job controller, dependsOn.

The pods of a task that waits do not exist. Unlike in Volcano the gang's minimum leaves such tasks out until they may
start: otherwise the tasks that they wait for could not start either.
"""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api import batch
from volcano_py.api.batch import Job, Task
from volcano_py.api.core import Pod
from volcano_py.controllers.job.observed import find_task, task_of


def unknown_dependencies(job: Job, task: Task) -> list[str]:
    """The tasks that a task depends on and that do not exist."""
    names = (task.depends_on.name or ()) if task.depends_on else ()
    return [name for name in names if find_task(job, name) is None]


def may_start(job: Job, task: Task, pods: Sequence[Pod]) -> bool:
    """Whether the dependencies of a task are ready."""
    depends = task.depends_on
    if depends is None or not depends.name:
        return True
    needed = [find_task(job, name) for name in depends.name]
    ready = [one is not None and is_ready(one, pods) for one in needed]
    if depends.iteration == batch.ITERATION_ANY and len(ready) > 1:
        return any(ready)
    return all(ready)


def is_ready(task: Task, pods: Sequence[Pod]) -> bool:
    """Whether enough pods of the task have succeeded, or run with all containers ready."""
    if task.min_available is None:
        return True
    number = 0
    for pod in pods:
        if task_of(pod) != task.name:
            continue
        statuses = pod.status.container_statuses or []
        running = pod.status.phase == "Running" and all(container.ready for container in statuses)
        number += pod.status.phase == "Succeeded" or running
    return number >= task.min_available


def waiting_tasks(job: Job, pods: Sequence[Pod]) -> frozenset[str]:
    """The names of the tasks without pods whose dependencies are not ready."""
    depending = [task for task in job.spec.tasks or () if task.depends_on is not None and task.depends_on.name]
    if not depending:
        return frozenset()
    started = {task_of(pod) for pod in pods}
    return frozenset(task.name for task in depending if task.name not in started and not may_start(job, task, pods))
