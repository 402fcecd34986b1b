"""backfill: places for pods that ask for nothing. Volcano: action backfill.

Best-effort tasks are placed one by one, at once and without a statement: no resource is checked, only the
node rules.
"""

from __future__ import annotations

import heapq

from volcano_py.scheduler.actions.task_queue import task_queue
from volcano_py.scheduler.framework.fit_errors import FitErrors
from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.task import Task


def backfill(session: Session) -> None:
    """Place best-effort tasks of all jobs that are let in."""
    for job, task in _candidates(session):
        session.work.tasks_tried += 1
        error = session.votes.pre_predicate(task)
        if error is not None:
            count = len(session.table)
            job.record_fit_errors(task, FitErrors({error: count}, count))
            continue
        node = session.placement.best(task, room=False)
        if node is None:
            job.record_fit_errors(task, session.placement.refusal(task, room=False))
            continue
        session.allocate(task, node)


def _candidates(session: Session) -> list[tuple[SessionJob, Task]]:
    """All at once and in order: queue, job, task. Pipelined best-effort tasks are Pending again."""
    votes = session.votes
    todo: dict[str, list[Task]] = {}
    queues: PriorityQueue[Queue] = PriorityQueue(votes.queue_before)
    by_queue: dict[str, list[SessionJob]] = {}
    for job in session.jobs.values():
        waiting = job.best_effort_counts[st.PENDING] + job.best_effort_counts[st.PIPELINED]
        if not waiting or job.is_pending() or votes.job_valid(job) is not None:
            continue
        found = []
        for task in job.tasks.values():
            if not task.best_effort:
                continue
            status = session.statuses[task.slot]
            if status == st.PIPELINED:
                session.unplace(task)
                found.append(task)
            elif status == st.PENDING and not task.sched_gated:
                found.append(task)
        if found:
            todo[job.uid] = task_queue(votes, found)
            if job.queue not in by_queue:
                by_queue[job.queue] = []
                queues.push(session.queues[job.queue])
            by_queue[job.queue].append(job)
    order = []
    while queues:
        queue = queues.pop()
        heap = [(votes.job_key(job), job) for job in by_queue[queue.name]]
        heapq.heapify(heap)
        while heap:
            job = heapq.heappop(heap)[1]
            order += [(job, task) for task in reversed(todo[job.uid])]
    return order
