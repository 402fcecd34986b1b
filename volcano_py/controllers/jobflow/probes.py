"""Whether the Jobs that an entry depends on are ready.

Without a probe a target must be Completed. With one, the tasks that the probe contains must pass it: as many pods of a
task as its minAvailable. A target without any of these tasks must be Completed; a Completed target always passes,
because its pods no longer respond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from volcano_py.api import names
from volcano_py.api.batch import COMPLETED, Job, Task
from volcano_py.api.core import Pod
from volcano_py.api.flow import HTTPGet, Probe, TaskStatus, TCPSocket

PERIOD_SECONDS = 5.0
"""Seconds between two runs of a probe that has not passed."""

PASSED = {
    "Pending": ("Pending", "Running", "Succeeded", "Failed"),
    "Running": ("Running", "Succeeded"),
    "Succeeded": ("Succeeded",),
    "Failed": ("Failed",),
    "Unknown": ("Unknown",),
}
"""Phase of pods → the phases that imply it was reached: a short task may have succeeded before the observation."""

Check = HTTPGet | TCPSocket | TaskStatus


class Question(Struct, frozen=True):
    """A check that requires a request to the pod."""

    address: str
    port: int
    path: str = ""
    """Path of a GET request; empty: a TCP connection."""
    header: tuple[str, str] | None = None


Answers = Mapping[Question, bool]


def checks(probe: Probe) -> list[Check]:
    """All checks of a probe."""
    return [*(probe.http_get_list or ()), *(probe.tcp_socket_list or ()), *(probe.task_status_list or ())]


def mistakes(probe: Probe, targets: Sequence[Job]) -> Iterator[str]:
    """Checks that these targets, which all exist, can never pass."""
    known = {task.name for job in targets for task in job.spec.tasks or ()}
    for check in checks(probe):
        if check.task_name and check.task_name not in known:
            yield f"no target has a task {check.task_name!r}; they have {', '.join(sorted(known))}"
        if isinstance(check, TaskStatus) and check.phase not in PASSED:
            yield f"taskStatusList: {check.phase!r} is not a pod phase; use one of {', '.join(PASSED)}"


def far_enough(job: Job, probe: Probe | None, pods: Sequence[Pod], answers: Answers) -> bool:
    """Whether the dependents of a Job may start; `pods` are the Job's. A missing result counts as failed."""
    if job.status.state.phase == COMPLETED:
        return True
    named = list(_named(job, probe))
    return bool(named) and all(_holds(job, task, check, pods, answers) for task, check in named)


def questions(job: Job, probe: Probe | None, pods: Sequence[Pod]) -> Iterator[Question]:
    """The requests to the Job's pods that `far_enough` needs."""
    if job.status.state.phase == COMPLETED:
        return
    for task, check in _named(job, probe):
        if not isinstance(check, TaskStatus):
            needed = [_question(check, pod) for pod in _listening(task, pods)]
            if len(needed) >= _needed(task):
                yield from needed


def _named(job: Job, probe: Probe | None) -> Iterator[tuple[Task, Check]]:
    """The checks that apply to a Job, with their task; a check without a task applies to all."""
    for check in checks(probe) if probe else ():
        for task in job.spec.tasks or ():
            if check.task_name in ("", task.name):
                yield task, check


def _holds(job: Job, task: Task, check: Check, pods: Sequence[Pod], answers: Answers) -> bool:
    if isinstance(check, TaskStatus):
        state = (job.status.task_status_count or {}).get(task.name)
        phases = (state.phase or {}) if state else {}
        passed = sum(phases.get(phase, 0) for phase in PASSED.get(check.phase, ()))
    else:
        passed = sum(answers.get(_question(check, pod), False) for pod in _listening(task, pods))
    return passed >= _needed(task)


def _needed(task: Task) -> int:
    return max(1, task.replicas if task.min_available is None else task.min_available)


def _listening(task: Task, pods: Sequence[Pod]) -> list[Pod]:
    """The pods of a task that can respond."""
    return [
        pod
        for pod in pods
        if (pod.metadata.annotations or {}).get(names.TASK_SPEC) == task.name
        and pod.status.phase == "Running"
        and pod.status.pod_ip
        and pod.metadata.deletion_timestamp is None
    ]


def _question(check: HTTPGet | TCPSocket, pod: Pod) -> Question:
    if isinstance(check, TCPSocket):
        return Question(pod.status.pod_ip, check.port)
    header = (check.http_header.name, check.http_header.value) if check.http_header else None
    path = check.path if check.path.startswith("/") else f"/{check.path}"
    return Question(pod.status.pod_ip, check.port, path, header)
