"""Worksheet: the tasks of a job with sub-jobs that are still to be placed, and their order. Volcano:
organizeJobWorksheet."""

from __future__ import annotations

from collections.abc import Callable

from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, task_queue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob, group_sub_job
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.group_tree import GroupTree
from volcano_py.scheduler.model.jobs.task import Task


class Worksheet:
    """Pending tasks by sub-job (the first one last), and the sub-jobs that the job requires."""

    __slots__ = ("required", "tasks")

    def __init__(self, tasks: dict[str, TaskQueue], required: frozenset[str]) -> None:
        self.tasks = tasks
        self.required = required

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def clone(self) -> Worksheet:
        return Worksheet({uid: tasks.copy() for uid, tasks in self.tasks.items()}, self.required)

    def order(self, session: Session, job: SessionJob) -> list[SubJob]:
        """The sub-jobs with pending tasks: the required ones first."""
        subs = [job.sub_jobs[uid] for uid in self.tasks]
        return sorted(subs, key=lambda s: (s.uid not in self.required, session.orders.sub_job_key(s)))


def worksheet(session: Session, job: SessionJob, wanted: Callable[[Task], bool]) -> Worksheet:
    """The worksheet of a job over its pending tasks for which `wanted` is true."""
    of: dict[str, list[Task]] = {}
    for task in session.pending(job):
        sub_of = job.sub_job_of(task)
        if sub_of is not None and wanted(task):
            of.setdefault(sub_of.uid, []).append(task)
    queues = {uid: task_queue(session.orders, tasks) for uid, tasks in of.items()}
    return Worksheet(queues, _required(session, job))


def _required(session: Session, job: SessionJob) -> frozenset[str]:
    """The sub-jobs that a job still requires."""
    if job.model.tree is not None:
        return frozenset(_required_of(session, job, job.model.tree) or ())
    satisfied: dict[str, int] = {}
    waiting = []
    for sub in job.sub_jobs.values():
        if session.states.sub_job_ready(job, sub):
            satisfied[sub.gid] = satisfied.get(sub.gid, 0) + 1
        else:
            waiting.append(sub)
    required = set()
    for sub in sorted(waiting, key=session.orders.sub_job_key):
        if satisfied.get(sub.gid, 0) < job.min_sub_jobs.get(sub.gid, 0):
            required.add(sub.uid)
            satisfied[sub.gid] = satisfied.get(sub.gid, 0) + 1
    return frozenset(required)


def _required_of(session: Session, job: SessionJob, group: GroupTree) -> list[str] | None:
    """The sub-jobs that a group of a tree requires, in the order of its children; None: too few of them have enough
    pods."""
    if not group.composite:
        sub = job.sub_jobs[group_sub_job(job.uid, group.name)]
        if session.states.sub_job_ready(job, sub):
            return []
        return [sub.uid] if sub.valid_num >= sub.min_available else None
    able = [found for child in group.below if (found := _required_of(session, job, child)) is not None]
    if len(able) < group.least:
        return None
    return [uid for found in sorted(able, key=bool)[: group.least] for uid in found]
