"""When a job that others depend on is far enough for them.

Without a probe a target has to be Completed. With one, its tasks that the probe names have to pass: as many of a task's
pods as its minAvailable. A target of whose tasks the probe names none has to be Completed, and one that is Completed
always will do, because its pods no longer answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from volcano_py.api import names
from volcano_py.api.batch import COMPLETED, Job, Task
from volcano_py.api.core import Pod
from volcano_py.api.flow import HTTPGet, Probe, TaskStatus, TCPSocket

PERIOD_SECONDS = 5.0
"""Between two looks at a probe that does not hold yet."""

PASSED = {
    "Pending": ("Pending", "Running", "Succeeded", "Failed"),
    "Running": ("Running", "Succeeded"),
    "Succeeded": ("Succeeded",),
    "Failed": ("Failed",),
    "Unknown": ("Unknown",),
}
"""Phase of pods → the phases of those that have been in it: a short task may have succeeded before we look."""

Check = HTTPGet | TCPSocket | TaskStatus


class Question(Struct, frozen=True):
    """Something that can only be asked of a pod itself."""

    address: str
    port: int
    path: str = ""
    """Of a GET; empty: whether the port accepts a connection."""
    header: tuple[str, str] | None = None


Answers = Mapping[Question, bool]


def checks(probe: Probe) -> list[Check]:
    """Everything that a probe asks for."""
    return [*(probe.http_get_list or ()), *(probe.tcp_socket_list or ()), *(probe.task_status_list or ())]


def mistakes(probe: Probe, targets: Sequence[Job]) -> Iterator[str]:
    """What can never hold of these targets, which all exist."""
    known = {task.name for job in targets for task in job.spec.tasks or ()}
    for check in checks(probe):
        if check.task_name and check.task_name not in known:
            yield f"no target has a task {check.task_name!r}; they have {', '.join(sorted(known))}"
        if isinstance(check, TaskStatus) and check.phase not in PASSED:
            yield f"taskStatusList: {check.phase!r} is no phase of pods; use one of {', '.join(PASSED)}"


def far_enough(job: Job, probe: Probe | None, pods: Sequence[Pod], answers: Answers) -> bool:
    """Whether what depends on a job may start; `pods` are the job's, an answer that is missing is no."""
    if job.status.state.phase == COMPLETED:
        return True
    named = list(_named(job, probe))
    return bool(named) and all(_holds(job, task, check, pods, answers) for task, check in named)


def questions(job: Job, probe: Probe | None, pods: Sequence[Pod]) -> Iterator[Question]:
    """What has to be asked of the job's pods before `far_enough` can say yes."""
    if job.status.state.phase == COMPLETED:
        return
    for task, check in _named(job, probe):
        if not isinstance(check, TaskStatus):
            asked = [_question(check, pod) for pod in _listening(task, pods)]
            if len(asked) >= _needed(task):
                yield from asked


def _named(job: Job, probe: Probe | None) -> Iterator[tuple[Task, Check]]:
    """The checks that concern a job, with its task; one that names no task concerns all."""
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
    """The pods of a task that may answer."""
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
