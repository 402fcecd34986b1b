"""Dominant resource fairness between jobs; between queues in a tree, see drf_tree."""

from __future__ import annotations

from typing import Any

from tests.reference.job import Job
from tests.reference.plugins.drf_tree import drf_tree
from tests.reference.resource import Resource, dominant_share
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.votes import PERMIT


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

    def richer(preemptor: Task, candidates: list[Task]) -> tuple[list[Task] | None, int]:
        if preemptor.job not in allocated:
            return None, PERMIT
        mine = dominant_share(allocated[preemptor.job].clone().add(preemptor.resreq), session.total)
        left: dict[str, Resource] = {}
        victims = []
        for c in candidates:
            if c.job not in left:
                left[c.job] = allocated[c.job].clone()
            theirs = dominant_share(left[c.job].sub(c.resreq), session.total)
            if mine < theirs or abs(mine - theirs) <= 1e-6:
                victims.append(c)
        return victims, PERMIT

    if session.conf.first_flag("drf", "enableHierarchy"):
        drf_tree(session)
    session.votes.register("Preemptable", "drf", richer)
    session.votes.register("JobOrder", "drf", smaller_share_first)
    session.handlers.append(Handler(allocate, deallocate))
