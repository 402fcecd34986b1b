"""reserve: start the jobs that have waited longest for their size, and hold nodes for those that do not fit yet.

Not in Volcano. It runs before allocate, and needs the plugin `reservation`, which selects the jobs and their order. A
job that fits starts; for the first that do not, nodes are reserved from the earliest time on at which they are expected
to fit. The other jobs start in allocate, where the reservations leave room for them.
"""

from __future__ import annotations

from collections.abc import Container

from volcano_py.scheduler.actions.allocate import JobsToPlace, allocate_flat, waiting_jobs
from volcano_py.scheduler.actions.placing.allocate_job import allocate_job
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.reservations.book import KeptReservations, book_of
from volcano_py.scheduler.framework.session import Session


class Reserve(Action):
    """See the module."""

    name = "reserve"

    def execute(self, session: Session) -> None:
        book = book_of(session)
        if book is None:
            raise ValueError("the plugin reservation is not configured, so nothing is reserved; add it to a tier")
        kept = session.cluster.keep(KeptReservations)
        kept.reserved = []
        first = book.first
        if not first:
            kept.since = {}
            return
        waiting = waiting_jobs(session, _Others({job.uid for job in first}))
        for job in first:
            if len(book.reserved) >= book.most or session.work.exhausted:
                break
            if (job.uid not in waiting.tasks and job.uid not in waiting.sheets) or _starts(session, waiting, job):
                continue
            queue = session.queues[job.queue]
            task = next(iter(session.pending(job)), None)
            if task is None or session.limits.overused(queue) or not session.limits.allocatable(queue, task):
                continue  # what its queue may have decides, not the nodes
            book.reserve(job)
        kept.since = {held.job: kept.since.get(held.job, session.now) for held in book.reserved}
        kept.reserved = list(book.reserved)
        for held in book.reserved:
            session.wake_at(held.start)


class _Others(Container[str]):
    """The jobs that the action leaves to allocate."""

    def __init__(self, first: set[str]) -> None:
        self._first = first

    def __contains__(self, uid: object) -> bool:
        return uid not in self._first


def _starts(session: Session, waiting: JobsToPlace, job: SessionJob) -> bool:
    """Place a job; returns whether it starts."""
    queue = session.queues[job.queue]
    if session.limits.overused(queue):
        return False
    session.work.jobs_tried += 1
    if job.uid in waiting.sheets:
        return allocate_job(session, queue, job, waiting.sheets[job.uid])
    return allocate_flat(session, queue, job, waiting.tasks[job.uid])
