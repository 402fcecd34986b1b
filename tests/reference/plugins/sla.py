"""sla: admits jobs, and treats them as pipelined, after their waiting time."""

from __future__ import annotations

from typing import Any

from tests.reference.conf import duration
from tests.reference.job import Job
from tests.reference.session import Session
from tests.reference.votes import ABSTAIN, PERMIT

KEYS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")


def sla(session: Session, arguments: dict[str, Any]) -> None:
    otherwise = _positive(arguments.get("sla-waiting-time"))

    def waiting_time(job: Job) -> float | None:
        annotations = job.group["metadata"].get("annotations") or {}
        own = (_positive(annotations.get(key)) for key in KEYS)
        return next((seconds for seconds in own if seconds is not None), otherwise)

    def due_first(left: Job, right: Job) -> int:
        a, b = waiting_time(left), waiting_time(right)
        if a is None or b is None:
            return (a is None) - (b is None)
        x, y = left.created + a, right.created + b
        return (x > y) - (x < y)

    def overdue(job: Job) -> int:
        wait = waiting_time(job)
        if wait is None or session.now - job.created < wait:
            return ABSTAIN
        session.votes.deciding.add("sla")
        return PERMIT

    session.votes.register("JobOrder", "sla", due_first)
    session.votes.register("JobEnqueueable", "sla", overdue)
    session.votes.register("JobPipelined", "sla", overdue)


def _positive(text: Any) -> float | None:
    seconds = duration(text)
    return seconds if seconds is not None and seconds > 0 else None
