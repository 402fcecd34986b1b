"""allocate: place the tasks of jobs. Volcano: action allocate.

Queues are popped in their order, one job each, and pushed back. A job's tasks are placed in a statement until the job
is ready; then the statement is committed, and the remaining tasks (further tasks of an elastic job) wait for the job's
next turn. A job that cannot become ready is not tried again in this cycle. A job that is only pipelined keeps what its
statement holds until the session ends. Jobs with a hard topology or with sub-groups are placed by `allocate_job`.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from volcano_py.scheduler.actions.allocate_arguments import AllocateArguments
from volcano_py.scheduler.actions.eviction.nominations import Reservations
from volcano_py.scheduler.actions.eviction.reclaiming import entitled_gangs, reclaims_for_entitled
from volcano_py.scheduler.actions.placing.allocate_job import allocate_job
from volcano_py.scheduler.actions.placing.job_queue import JobQueue
from volcano_py.scheduler.actions.placing.place_tasks import place_as_nominated, place_tasks
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, task_queue
from volcano_py.scheduler.actions.placing.worksheet import Worksheet, worksheet
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue


@dataclass
class Tried:
    """Jobs that a cycle with a budget tried without success; the next cycle continues with the other jobs."""

    jobs: set[str] = field(default_factory=set)


class Allocate(Action):
    """Place the tasks that fit, in the order of queues, jobs and tasks."""

    name = "allocate"
    Arguments = AllocateArguments

    def execute(self, session: Session) -> None:
        tried = session.cluster.keep(Tried).jobs
        queues, jobs, tasks, sheets = waiting_jobs(session, tried)
        reservations = Reservations(session)
        entitled = entitled_gangs(session) if reclaims_for_entitled(session) else None
        while queues and not session.work.exhausted:
            queue = queues.pop()
            waiting = jobs[queue.name]
            if session.limits.overused(queue) or not waiting:
                continue
            job = waiting.pop()
            session.work.jobs_tried += 1
            reservations.dissolve(job)
            if job.uid in sheets:
                ready = allocate_job(session, queue, job, sheets[job.uid])
                more = bool(sheets[job.uid])
            else:
                may_start = self.may_start(session, job, tasks[job.uid])
                ready = may_start and allocate_flat(session, queue, job, tasks[job.uid])
                more = bool(tasks[job.uid])
            if ready:
                if more:
                    waiting.push(session.orders.job_key(job), job)
            elif entitled is not None and entitled.serve(job):
                pass  # what is idle counts for it before pods of queues above their share are placed there
            elif session.work.budget is not None:
                tried.add(job.uid)
            queues.push(queue)
        reservations.dissolve_all()
        if not session.work.exhausted:
            tried.clear()

    def may_start(self, session: Session, job: SessionJob, todo: TaskQueue) -> bool:
        """Whether to try a job that is one gang. A replay of a trace, which reports no reasons, passes those that
        certainly cannot start."""
        return True


class JobsToPlace(NamedTuple):
    """The jobs to place: their queues, the jobs of each queue, and by job the tasks or the worksheet."""

    queues: PriorityQueue[Queue]
    jobs: dict[str, JobQueue]
    tasks: dict[str, TaskQueue]
    sheets: dict[str, Worksheet]


def waiting_jobs(session: Session, tried: Container[str]) -> JobsToPlace:
    """What waits, without the jobs that were `tried` in an earlier part of the round."""
    found = JobsToPlace(PriorityQueue(session.orders.queue_before), {}, {}, {})
    enqueue_is_on = "enqueue" in session.configuration.actions
    for job in session.jobs.active():
        if job.is_pending():
            if enqueue_is_on:
                continue
            job.phase = "Inqueue"
        if job.uid in tried:
            continue
        work = work_of(session, job)
        if work is None:
            continue
        if isinstance(work, Worksheet):
            found.sheets[job.uid] = work
        else:
            found.tasks[job.uid] = work
        if job.queue not in found.jobs:
            found.jobs[job.queue] = JobQueue()
            found.queues.push(session.queues[job.queue])
        found.jobs[job.queue].push(session.orders.job_key(job), job)
    return found


def work_of(session: Session, job: SessionJob) -> TaskQueue | Worksheet | None:
    """The tasks of an admitted job that allocate would place; None: there are none, or the job may not be placed."""
    if not job.counts[st.PENDING] or session.states.job_valid(job) is not None:
        return None
    if job.has_topology and not session.topology_is_ready:
        return None
    if _divided(job):
        return worksheet(session, job, _placeable) or None
    return task_queue(session.orders, [t for t in session.pending(job) if _placeable(t)]) or None


def _placeable(task: Task) -> bool:
    """Whether allocate places a task: backfill places best-effort tasks, and a task with another controller's
    scheduling gate waits."""
    return not task.best_effort and (not task.sched_gated or task.only_queue_gate)


def _divided(job: SessionJob) -> bool:
    """Whether the job is placed by sub-job. A job without a hard topology or subgroup policies is one gang without a
    domain."""
    return bool(job.sub_jobs) and (job.has_policies or job.has_hard_topology)


def allocate_flat(session: Session, queue: Queue, job: SessionJob, todo: TaskQueue) -> bool:
    """Place tasks of a job that is one gang until it is ready, and bind them; returns whether it is ready."""
    sub = job.sub_jobs.get(job.uid)
    if sub is not None and sub.nominated_hyper_node:
        statement = place_as_nominated(session, queue, job, sub, todo)
        if statement is not None:
            ready = session.states.job_ready(job)
            if ready:
                statement.commit()
            return ready
    statement, ready = place_tasks(session, queue, job, todo, sub)
    if ready:
        statement.commit()
    return ready
