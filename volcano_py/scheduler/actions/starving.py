"""Who is short of what its gang needs, queue by queue. Volcano: how reclaim, gangpreempt and gangreclaim begin."""

from __future__ import annotations

import heapq
from typing import Any

from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model.queue import Queue

Heap = list[tuple[tuple[Any, ...], SessionJob]]
"""Jobs, the first of them on top."""


def starving_by_queue(session: Session) -> tuple[PriorityQueue[Queue], dict[str, Heap]]:
    """The queues of valid, admitted jobs in their order, and of each queue the jobs that starve."""
    votes = session.votes
    queues: PriorityQueue[Queue] = PriorityQueue(votes.queue_before)
    starving: dict[str, Heap] = {}
    for job in session.jobs.values():
        if job.is_pending() or votes.job_valid(job) is not None:
            continue
        if job.queue not in starving:
            starving[job.queue] = []
            queues.push(session.queues[job.queue])
        if votes.job_starving(job):
            heapq.heappush(starving[job.queue], (votes.job_key(job), job))
    return queues, starving
