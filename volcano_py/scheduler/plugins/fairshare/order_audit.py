"""Audit lines: which job started before an older one because its owner or queue has used less. Not in Volcano.

A line names the oldest job of equal priority that was passed, waits now, and needs no more than the job that started
and what is idle. Both orders are those of the beginning of the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import PODS

_HOUR = 3600.0
MOST = 1_000
"""Lines of a session."""


class Compared(NamedTuple):
    """Two levels, the lower of which comes first, and whose they are."""

    first: str
    first_level: float
    other: str
    other_level: float


Compare = Callable[[SessionJob, SessionJob], Compared | None]
"""What the order decides by between two jobs; None: by nothing of it."""


class StartedJobs:
    """The jobs whose gangs start in a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placed: Counter[str] = Counter()

    def moved(self, task: Task, count: int) -> None:
        """Tasks equal to this one were placed, or removed (below 0)."""
        self._placed[task.job] += count

    def found(self) -> list[SessionJob]:
        """Those that are ready now, and were not before."""
        jobs = (self._session.jobs.get(uid) for uid, count in sorted(self._placed.items()) if count > 0)
        return [
            job
            for job in jobs
            if job is not None and job.ready_num - self._placed[job.uid] < max(1, job.min_available) <= job.ready_num
        ]


def audit_lines(session: Session, started: Sequence[SessionJob], compare: Compare) -> list[str]:
    """One line for each job that has passed another one."""
    if not started:
        return []
    enqueue_is_on = "enqueue" in session.configuration.actions
    waiting = sorted(
        (
            job
            for job in session.jobs.active()
            if job.counts[st.PENDING]
            and job.ready_num < max(1, job.min_available)
            and not (job.is_pending() and enqueue_is_on)
        ),
        key=lambda job: (job.created, job.uid),
    )
    if not waiting:
        return []
    idle = _idle(session)
    found: list[str] = []
    for job in started[:MOST]:
        passed = _passed(session, job, waiting, idle, compare)
        if passed is not None:
            other, by = passed
            used = [f"{whose} has used {used / _HOUR:.2f} h" for whose, used in (by[:2], by[2:])]
            found.append(
                f"fairshare: job {job.uid} started before {other.uid}, which was created earlier: by weight, "
                f"{used[0]} of the cluster, and {used[1]}"
            )
    return found


def _passed(
    session: Session, job: SessionJob, waiting: Sequence[SessionJob], idle: Mapping[str, float], compare: Compare
) -> tuple[SessionJob, Compared] | None:
    """The oldest job that this one has passed."""
    priority = session.queues[job.queue].priority
    for other in waiting:
        if other.created >= job.created:
            break
        if other.priority != job.priority or session.queues[other.queue].priority != priority:
            continue
        by = compare(job, other)
        if by is not None and _fits_instead(other, job.model.total_request, idle):
            return other, by
    return None


def _fits_instead(job: SessionJob, started: Resource, idle: Mapping[str, float]) -> bool:
    """Whether a gang requests no more than another one and what is idle, by amounts."""
    needs = job.min_resources if job.min_resources is not None else job.model.total_request
    return all(
        needs[name] <= started[name] + idle.get(name, 0.0) + EPS
        for name in needs.names()
        if name != PODS and needs[name] > 0
    )


def _idle(session: Session) -> dict[str, float]:
    sums = (session.numbers.idle - session.numbers.pipelined).clip(min=0.0).sum(axis=1)
    return {name: float(sums[row]) for name, row in session.table.rows.items()}
