"""backfill: place pods without requests. Volcano: action backfill.

Best-effort tasks are placed one by one and bound at once: no resource is checked, only the node filters. The tasks of a
gang below its minimum are placed together or not at all (deviation whole-best-effort).
"""

from __future__ import annotations

import heapq

from volcano_py.scheduler.actions.placing.place_tasks import place_best_effort
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, task_queue
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.search.fit_errors import FitErrors
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue


class Backfill(Action):
    """Place the best-effort tasks of all admitted jobs."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        whole = session.deviations.whole_best_effort
        for job, tasks in _candidates(session):
            together = Statement(session) if whole and job.ready_num < job.min_available else None
            for task in tasks:
                session.work.tasks_tried += 1
                node = place_best_effort(session, job, task)
                if node is None:
                    continue
                if together is None:
                    _report(job, task, session.moves.allocate(task, node))
                else:
                    together.allocate(task, node)
            if together is None:
                continue
            if job.ready_num >= job.min_available and session.states.job_ready(job):
                together.steps = []  # the steps stay applied, and their tasks are bound with what allocate has placed
                _report(job, tasks[-1], session.moves.bind_allocated(job))
            else:
                together.discard()


def _report(job: SessionJob, task: Task, error: str | None) -> None:
    """Report why the pods of a job cannot be bound with a task."""
    if error is not None:
        job.set_fit_errors(task, FitErrors(error=error))


def _candidates(session: Session) -> list[tuple[SessionJob, list[Task]]]:
    """All candidates in the order of queue, job and task. Pipelined best-effort tasks become pending again."""
    todo: dict[str, TaskQueue] = {}
    queues: PriorityQueue[Queue] = PriorityQueue(session.orders.queue_before)
    by_queue: dict[str, list[SessionJob]] = {}
    kept = session.deviations.kept_nominations
    for job in session.jobs.active():
        waiting = job.best_effort_counts[st.PENDING] + job.best_effort_counts[st.PIPELINED]
        if not waiting or job.is_pending() or session.states.job_valid(job) is not None:
            continue
        found = []
        for task in job.tasks.values():
            if not task.best_effort:
                continue
            status = session.statuses[task.slot]
            if status == st.PIPELINED:
                if kept and task.slot in session.moves.evicting:
                    continue  # pods were evicted for it: it waits for that node
                session.moves.unplace(task)
                found.append(task)
            elif status == st.PENDING and not task.sched_gated:
                found.append(task)
        if found:
            todo[job.uid] = task_queue(session.orders, found)
            if job.queue not in by_queue:
                by_queue[job.queue] = []
                queues.push(session.queues[job.queue])
            by_queue[job.queue].append(job)
    order = []
    while queues:
        queue = queues.pop()
        heap = [(session.orders.job_key(job), job) for job in by_queue[queue.name]]
        heapq.heapify(heap)
        while heap:
            job = heapq.heappop(heap)[1]
            of_job = todo[job.uid]
            order.append((job, [of_job.pop() for _ in range(len(of_job))]))
    return order
