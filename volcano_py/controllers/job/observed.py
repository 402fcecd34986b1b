"""What the job controller sees of one job, and counting its pods."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from volcano_py.api import names
from volcano_py.api.batch import Job, JobCondition, JobState, JobStatus, Task, TaskState
from volcano_py.api.core import Pod
from volcano_py.api.meta import format_time
from volcano_py.api.scheduling import PodGroup, Queue

_COUNTERS = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}


class Unready(Exception):
    """The job cannot be worked on now; `reason` is that of the event that says so. It is tried again.

    `from_outside`: because of something that is not the job's, and may come.
    """

    def __init__(self, reason: str, message: str, *, from_outside: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.from_outside = from_outside


class Observed(Struct):
    """Everything a decision about a job rests on."""

    job: Job
    pods: list[Pod] = field(default_factory=list)
    """The pods that the job controls."""
    podgroup: PodGroup | None = None
    """The job's; one of another owner is not shown here."""
    foreign_podgroup: str = ""
    """Name of a PodGroup that is in the way of the job's."""
    queue: Queue | None = None
    problems: Sequence[str] = ()
    """Why admission would reject a new job."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """PriorityClass name to value."""
    claims: frozenset[str] = frozenset()
    """Those of the job's PersistentVolumeClaims that exist."""
    now: float = 0.0
    """Seconds since the epoch."""


def task_of(pod: Pod) -> str:
    """The task a pod was made for."""
    return (pod.metadata.annotations or {}).get(names.TASK_SPEC, "")


def job_version(pod: Pod) -> int:
    """The version of the job for which the pod was made; a pod that does not say it is of the latest."""
    text = (pod.metadata.annotations or {}).get(names.JOB_VERSION, "")
    return int(text) if text.isdecimal() else sys.maxsize


def is_out_of_sync(pod: Pod) -> bool:
    """Whether we have marked the pod as one that we are ending ourselves."""
    return names.CONTROLLER_OUT_OF_SYNC in (pod.metadata.annotations or {})


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def pod_name(job: Job, task: str, index: int) -> str:
    return f"{job.metadata.name}-{task}-{index}"


def find_task(job: Job, name: str) -> Task | None:
    return next((task for task in job.spec.tasks or () if task.name == name), None)


def fresh_status(job: Job) -> JobStatus:
    """The job's status before it is counted again: lasting fields are kept; counters and errors are not."""
    old = job.status
    return JobStatus(
        state=JobState(phase=old.state.phase, last_transition_time=old.state.last_transition_time),
        min_available=job.spec.min_available,
        version=old.version,
        retry_count=old.retry_count,
        controlled_resources=dict(old.controlled_resources) if old.controlled_resources else None,
        conditions=list(old.conditions) if old.conditions else None,
    )


def count(status: JobStatus, task: str, phase: str) -> None:
    """One more living or ended pod of `task`."""
    counter = _COUNTERS.get(phase, "unknown")
    setattr(status, counter, getattr(status, counter) + 1)
    if status.task_status_count is None:
        status.task_status_count = {}
    state = status.task_status_count.setdefault(task, TaskState(phase={}))
    assert state.phase is not None
    state.phase[phase or "Unknown"] = state.phase.get(phase or "Unknown", 0) + 1


def count_pods(status: JobStatus, pods: Iterable[Pod]) -> None:
    """Count pods as they are."""
    for pod in pods:
        if is_terminating(pod):
            status.terminating += 1
        else:
            count(status, task_of(pod), pod.status.phase or "Pending")


def enter_phase(status: JobStatus, now: float) -> None:
    """Note the time of the change; the condition of the phase moves to the end of the list."""
    stamp = format_time(now)
    status.state.last_transition_time = stamp
    kept = [condition for condition in status.conditions or () if condition.status != status.state.phase]
    status.conditions = [*kept, JobCondition(status=status.state.phase, last_transition_time=stamp)]
