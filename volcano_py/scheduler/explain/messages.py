"""Why a job or a task is pending, in Volcano's texts. Volcano: FitError texts and TaskSchedulingReason.

These texts are written to PodGroup conditions, Events and pod conditions, where users' tools search for them.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from volcano_py.scheduler.explain.stated import origin
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


class TaskReason(NamedTuple):
    reason: str
    """Schedulable, Unschedulable, or the name of the task's status."""
    message: str
    nominated_node: str = ""


def task_reason(session: Session, job: SessionJob, task: Task) -> TaskReason:
    """The scheduling state of a task; decisions of a discarded statement count."""
    last = (job.last_transaction or {}).get(task.key)
    if last is not None:
        status, node, evicted = last
    else:
        status = session.status(task)
        evicted = task.slot in session.moves.evicting
        at = session.node_of(task)
        node = "" if at is None else session.table.names[at]
    if status == st.ALLOCATED:
        return TaskReason(
            "Schedulable",
            f"Pod {task.key} can possibly be assigned to {node}, once minAvailable is satisfied",
        )
    if status == st.PIPELINED:
        return TaskReason(
            "Unschedulable",
            f"Pod {task.key} can possibly be assigned to {node}, "
            "once resource is released and minAvailable is satisfied",
            node if evicted else "",
        )
    if status == st.PENDING:
        errors = job.fit_errors.get(task.key)
        return TaskReason("Unschedulable", str(errors) if errors is not None else _of_job(session, job))
    return TaskReason(st.STATUS_NAMES[status], _of_job(session, job))


def _of_job(session: Session, job: SessionJob) -> str:
    """The limit that rejects all tasks of a job; with the deviation stated-reasons the reason of the job."""
    return origin(session, job) if job.job_fit_errors else ""


@lru_cache(maxsize=1024)
def _counts(is_ready: bool, counts: tuple[int, ...], min_available: int) -> str:
    """The beginning of the line, which many gangs share."""
    ready = "pod group is ready" if is_ready else "pod group is not ready"
    parts = [f"{n} {st.STATUS_NAMES[s]}" for s, n in enumerate(counts) if n]
    return f"{ready}, {', '.join(sorted([*parts, f'{min_available} minAvailable']))}"


def job_message(session: Session, job: SessionJob) -> str:
    """The state of a gang in one line: counts by status, then the pending tasks and the reasons."""
    text = _counts(job.is_ready(), tuple(job.counts), job.min_available)
    pending = session.pending(job)
    if pending:
        if job.last_transaction:
            reasons = Counter(task_reason(session, job, task).reason for task in pending)
        else:
            reasons = Counter({"Unschedulable": len(pending)})
        text += "; Pending: " + ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    if job.job_fit_errors:
        text += f". Origin reason is: {origin(session, job)}"
    else:
        # Also of a task that has a node or is pipelined now. Volcano uses any task; here pending ones come first.
        rejected = [job.tasks[key] for key in job.fit_errors if key in job.tasks]
        if rejected:
            first = min(rejected, key=lambda t: (session.status(t) != st.PENDING, t.key))
            text += f". Origin reason is {first.name}: {job.fit_errors[first.key]}"
        elif pending and (reason := origin(session, job)):
            text += f". Origin reason is: {reason}"
    return text
