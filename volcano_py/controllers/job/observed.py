"""The observed state of one Job, and the counting of its pods."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct, field

from volcano_py.api import batch, names
from volcano_py.api.batch import Job, JobCondition, JobState, JobStatus, Task, TaskState
from volcano_py.api.bus import MAX_RUN_TIME_EXCEEDED
from volcano_py.api.core import Pod
from volcano_py.api.meta import format_time
from volcano_py.api.scheduling import PodGroup, Queue

_COUNTERS = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}


_STOPPED = frozenset(
    (batch.ABORTING, batch.ABORTED, batch.COMPLETING, batch.COMPLETED, batch.TERMINATING, batch.TERMINATED)
)
"""Phases that a Job is in because of an action; the reason of the action stays in the status."""


class Unready(Exception):
    """The Job cannot be processed now; `reason` is the reason of the Event. It is retried.

    `from_outside`: the cause is another object, which may be created later.
    """

    def __init__(self, reason: str, message: str, *, from_outside: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.from_outside = from_outside


class Observed(Struct):
    """The input of a decision about a Job."""

    job: Job
    pods: list[Pod] = field(default_factory=list)
    """The pods that the Job controls."""
    podgroup: PodGroup | None = None
    """The PodGroup that the Job controls."""
    foreign_podgroup: str = ""
    """Name of a PodGroup with the Job's PodGroup name but another owner."""
    queue: Queue | None = None
    problems: Sequence[str] = ()
    """Why admission would deny a new Job."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """PriorityClass name to value."""
    claims: frozenset[str] = frozenset()
    """The Job's PersistentVolumeClaims that exist."""
    now: float = 0.0
    """Seconds since the epoch."""


def with_task_defaults(job: Job) -> Job:
    """The Job with `minAvailable` in all tasks: admission does not store this default."""
    tasks = job.spec.tasks or []
    if all(task.min_available is not None for task in tasks):
        return job
    filled = [msgspec.structs.replace(task, min_available=_minimum_of(task)) for task in tasks]
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=filled))


def _minimum_of(task: Task) -> int:
    if task.min_available is not None:
        return task.min_available
    policy = task.partition_policy
    if policy is not None and policy.min_partitions > 0:
        return policy.min_partitions * policy.partition_size
    return task.replicas


def task_of(pod: Pod) -> str:
    """The task of a pod."""
    return (pod.metadata.annotations or {}).get(names.TASK_SPEC, "")


def job_version(pod: Pod) -> int:
    """The Job's version when the pod was created; a pod without the annotation counts as current."""
    text = (pod.metadata.annotations or {}).get(names.JOB_VERSION, "")
    return int(text) if text.isdecimal() else sys.maxsize


def is_out_of_sync(pod: Pod) -> bool:
    """Whether the controller has marked the pod as ended by itself."""
    return names.CONTROLLER_OUT_OF_SYNC in (pod.metadata.annotations or {})


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def pod_name(job: Job, task: str, index: int) -> str:
    return f"{job.metadata.name}-{task}-{index}"


def find_task(job: Job, name: str) -> Task | None:
    return next((task for task in job.spec.tasks or () if task.name == name), None)


def fresh_status(job: Job) -> JobStatus:
    """The Job's status before counting: persistent fields are kept; counters and errors are reset."""
    old = job.status
    state = JobState(phase=old.state.phase, last_transition_time=old.state.last_transition_time)
    if old.state.reason == MAX_RUN_TIME_EXCEEDED and old.state.phase in _STOPPED:
        state.reason, state.message = old.state.reason, old.state.message
    return JobStatus(
        state=state,
        min_available=job.spec.min_available,
        version=old.version,
        retry_count=old.retry_count,
        controlled_resources=dict(old.controlled_resources) if old.controlled_resources else None,
        conditions=list(old.conditions) if old.conditions else None,
    )


def count(status: JobStatus, task: str, phase: str) -> None:
    """Count one pod of `task`."""
    counter = _COUNTERS.get(phase, "unknown")
    setattr(status, counter, getattr(status, counter) + 1)
    if status.task_status_count is None:
        status.task_status_count = {}
    state = status.task_status_count.setdefault(task, TaskState(phase={}))
    assert state.phase is not None
    state.phase[phase or "Unknown"] = state.phase.get(phase or "Unknown", 0) + 1


def count_pods(status: JobStatus, pods: Iterable[Pod]) -> None:
    """Count the current pods."""
    for pod in pods:
        if is_terminating(pod):
            status.terminating += 1
        else:
            count(status, task_of(pod), pod.status.phase or "Pending")


def enter_phase(status: JobStatus, now: float) -> None:
    """Set the transition time; the condition of the phase moves to the end of the list."""
    stamp = format_time(now)
    status.state.last_transition_time = stamp
    kept = [condition for condition in status.conditions or () if condition.status != status.state.phase]
    status.conditions = [*kept, JobCondition(status=status.state.phase, last_transition_time=stamp)]
