"""enqueue: admit PodGroups whose minimum can be served, so that their pods are created. Volcano: action enqueue.

A job that is not admitted is skipped in this cycle and blocks no other job. Each queue gets one job at a time; the
plugins order the queues again after each job.
"""

from __future__ import annotations

from volcano_py.scheduler.actions.placing.job_queue import JobQueue
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.queue import Queue


class Enqueue(Action):
    """Move jobs from Pending to Inqueue."""

    name = "enqueue"

    def execute(self, session: Session) -> None:
        queues: PriorityQueue[Queue] = PriorityQueue(session.orders.queue_before)
        pending: dict[str, JobQueue] = {}
        seen: set[str] = set()
        for job in session.jobs.active():
            if job.queue not in seen:
                seen.add(job.queue)
                queues.push(session.queues[job.queue])
            if job.is_pending():
                if job.queue not in pending:
                    pending[job.queue] = JobQueue()
                pending[job.queue].push(session.orders.job_key(job), job)
        while queues:
            queue = queues.pop()
            waiting = pending.get(queue.name)
            if not waiting:
                continue
            job = waiting.pop()
            if job.min_resources is None or session.states.job_enqueueable(job):
                session.states.job_enqueued(job)
                job.phase = "Inqueue"
            queues.push(queue)
