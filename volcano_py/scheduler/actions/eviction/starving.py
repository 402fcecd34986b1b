"""The starving jobs of each queue. Volcano: the common start of reclaim, gangpreempt and gangreclaim."""

from __future__ import annotations

from volcano_py.scheduler.actions.eviction.back_off import backs_off
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.queue import Queue


def starving_by_queue(session: Session) -> tuple[PriorityQueue[Queue], dict[str, PriorityQueue[SessionJob]]]:
    """The queues of valid, admitted jobs in their order, and the starving jobs of each queue.

    Jobs are compared with each pop, because evictions in between change their order.
    """
    queues: PriorityQueue[Queue] = PriorityQueue(session.orders.queue_before)
    starving: dict[str, PriorityQueue[SessionJob]] = {}
    for job in session.jobs.active():
        if job.is_pending() or session.states.job_valid(job) is not None:
            continue
        if job.queue not in starving:
            starving[job.queue] = PriorityQueue(session.orders.job_before)
            queues.push(session.queues[job.queue])
        if session.states.job_starving(job) and not backs_off(session, job):
            starving[job.queue].push(job)
    return queues, starving
