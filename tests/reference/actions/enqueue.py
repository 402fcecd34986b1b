"""enqueue: admits PodGroups. Volcano: the action enqueue."""

from __future__ import annotations

from tests.reference.cluster import Queue
from tests.reference.heap import Heap
from tests.reference.job import Job
from tests.reference.session import Session


def enqueue(session: Session) -> None:
    votes = session.votes
    queues: Heap[Queue] = Heap(votes.queue_less)
    pending: dict[str, Heap[Job]] = {}
    for job in session.jobs.values():
        if job.queue not in pending:
            pending[job.queue] = Heap(votes.job_less)
            queues.push(session.queues[job.queue])
        if job.is_pending():
            pending[job.queue].push(job)
    while queues:
        queue = queues.pop()
        if not pending[queue.name]:
            continue
        job = pending[queue.name].pop()
        if job.min_resources is None or votes.job_enqueueable(job):
            votes.job_enqueued(job)
            job.phase = "Inqueue"
        queues.push(queue)
