"""Dominant resource fairness between jobs, without the hierarchy of queues."""

from __future__ import annotations

from typing import Any

from tests.reference.job import Job
from tests.reference.resource import Resource, dominant_share
from tests.reference.session import Handler, Session
from tests.reference.task import Task


def drf(session: Session, arguments: dict[str, Any]) -> None:
    allocated: dict[str, Resource] = {job.uid: job.allocated() for job in session.jobs.values()}

    def smaller_share_first(left: Job, right: Job) -> int:
        a = dominant_share(allocated[left.uid], session.total)
        b = dominant_share(allocated[right.uid], session.total)
        if a == b:
            return 0
        return -1 if a < b else 1

    def allocate(task: Task) -> None:
        allocated[task.job].add(task.resreq)

    def deallocate(task: Task) -> None:
        allocated[task.job].sub(task.resreq)

    session.votes.register("JobOrder", "drf", smaller_share_first)
    session.handlers.append(Handler(allocate, deallocate))
