"""allocate: give jobs their places. Volcano: action allocate (the flat path).

Queues are popped in their order, one job each, and pushed back. A job's tasks are placed in a statement until
the job is ready; then the statement is committed, and what is left of the job (an elastic job's further
tasks) waits for its next turn. A job that cannot become ready is not tried again in this cycle. A job that is
only pipelined keeps what its statement holds until the session ends.
"""

from __future__ import annotations

import heapq
from typing import Any

import msgspec
import numpy as np
from msgspec import field
from numpy.typing import NDArray

from volcano_py.scheduler.actions.task_queue import task_queue
from volcano_py.scheduler.framework.arguments import decode
from volcano_py.scheduler.framework.fit_errors import FitErrors
from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.task import Task


class Arguments(msgspec.Struct):
    error_cache: bool = field(default=True, name="predicateErrorCacheEnable")
    """Without the deviation own-verdict: do not try a pod where another of its role was refused."""


def _settings(session: Session) -> Arguments:
    read, _ = decode(Arguments, "action allocate", session.configuration.action_arguments.get("allocate"))
    return read


_Waiting = list[tuple[tuple[Any, ...], SessionJob]]


def allocate(session: Session) -> None:
    """Place what can be placed, in the order of queues, jobs and tasks."""
    votes = session.votes
    tasks: dict[str, list[Task]] = {}
    jobs: dict[str, _Waiting] = {}
    queues: PriorityQueue[Queue] = PriorityQueue(votes.queue_before)
    enqueue_is_on = "enqueue" in session.configuration.actions
    for job in session.jobs.values():
        if job.is_pending():
            if enqueue_is_on:
                continue
            job.phase = "Inqueue"
        if not job.counts[st.PENDING] or job.uid in session.cluster.tried or votes.job_valid(job) is not None:
            continue
        todo = task_queue(votes, (t for t in session.pending(job) if _placeable(t)))
        if not todo:
            continue
        tasks[job.uid] = todo
        if job.queue not in jobs:
            jobs[job.queue] = []
            queues.push(session.queues[job.queue])
        heapq.heappush(jobs[job.queue], (votes.job_key(job), job))
    while queues and not session.work.exhausted:
        queue = queues.pop()
        waiting = jobs[queue.name]
        if votes.overused(queue) or not waiting:
            continue
        job = heapq.heappop(waiting)[1]
        todo = tasks[job.uid]
        session.work.jobs_tried += 1
        statement, ready = allocate_tasks(session, queue, job, todo)
        if ready:
            statement.commit()
            if todo:
                heapq.heappush(waiting, (votes.job_key(job), job))
        elif session.work.budget is not None:
            session.cluster.tried.add(job.uid)
        queues.push(queue)
    if not session.work.exhausted:
        session.cluster.tried.clear()


def _placeable(task: Task) -> bool:
    """Best-effort tasks are left to backfill; tasks held by somebody else's gate are not ours yet."""
    return not task.best_effort and (not task.sched_gated or task.only_queue_gate)


def allocate_tasks(session: Session, queue: Queue, job: SessionJob, todo: list[Task]) -> tuple[Statement, bool]:
    """Place a job's tasks until it is ready; the statement, and whether it is.

    A statement that makes the job neither ready nor pipelined is taken back and comes back empty.
    """
    votes, placement = session.votes, session.placement
    statement = Statement(session)
    refused: dict[str, NDArray[np.bool_]] = {}
    """By role: where one of its pods was refused (only without own-verdict)."""
    remembers = not session.on("own-verdict") and _settings(session).error_cache
    while todo:
        task = todo.pop()
        session.work.tasks_tried += 1
        if not votes.allocatable(queue, task):
            if session.on("explain-queue-limits"):
                job.job_fit_errors = _queue_refuses(queue, task)
            continue
        if task.sched_gated:
            continue
        if job.task_has_fit_errors(task):
            text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            job.record_fit_errors(task, FitErrors(error=text))
            continue
        error = votes.pre_predicate(task)
        if error is not None:
            count = len(session.table)
            job.record_fit_errors(task, FitErrors({error: count}, count))
            if job.need_continue_allocating(session.statuses):
                continue
            break
        node = _nominated(session, task)
        if node is None:
            before = refused.get(task.role)
            node = placement.best(task, without=before)
            if remembers and task.role:
                now = ~placement.accepted(task)
                refused[task.role] = now if before is None else now | before
        if node is None:
            job.record_fit_errors(task, placement.refusal(task))
            if job.need_continue_allocating(session.statuses):
                continue
            break
        if placement.fits_now(task, node):
            failed = statement.allocate(task, node)
        else:
            failed = statement.pipeline(task, node, evicted=False)
        if failed is None and votes.job_ready(job):
            return statement, True
    if votes.job_ready(job):
        return statement, True
    if not votes.job_pipelined(job):
        statement.discard()
    return statement, False


def _queue_refuses(queue: Queue, task: Task) -> str:
    if queue.state != "Open":
        return f"queue {queue.name} is {queue.state or 'not opened yet'}; a queue must be Open to take pods"
    return f"queue {queue.name} may not take {task.name} now: it would hold more than its share"


def _nominated(session: Session, task: Task) -> int | None:
    """The node that an earlier eviction has promised to the pod, if it still takes it."""
    name = task.pod.status.nominated_node_name
    node = session.table.index.get(name) if name else None
    if node is None or not session.placement.fits_soon(task, node):
        return None
    return node if session.placement.accepted(task)[node] else None
