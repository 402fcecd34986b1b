"""reserve: start the jobs that have waited longest for their size, and hold nodes for those that do not fit yet.

Not in Volcano. It runs before allocate, and needs the plugin `reservation`, which selects the jobs and their order. A
job that fits starts; for the first that do not, nodes are reserved from the earliest time on at which they are expected
to fit. The other jobs start in allocate, where the reservations leave room for them.
"""

from __future__ import annotations

from volcano_py.scheduler.actions.allocate import allocate_flat, work_of
from volcano_py.scheduler.actions.placing.allocate_job import allocate_job
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue
from volcano_py.scheduler.actions.placing.worksheet import Worksheet
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.reservations.book import book_of
from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.framework.session import Session

_MOST_PLANNED = 8
"""Of the jobs that do not fit, how many more than there may be reservations are looked at: those for which nodes are
not held yet."""


class ReserveNodes(Action):
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
            kept.since, kept.plans = {}, {}
            return
        enqueue_is_on = "enqueue" in session.configuration.actions
        for job in first:
            planned = book.planned >= book.most + _MOST_PLANNED
            if len(book.reserved) >= book.most or planned or session.work.exhausted:
                break
            if job.is_pending():
                if enqueue_is_on:
                    continue
                job.phase = "Inqueue"
            work = work_of(session, job)
            if work is None or _starts(session, job, work):
                continue
            queue = session.queues[job.queue]
            if session.limits.overused(queue):
                continue  # what its queue may have decides, not the nodes
            book.reserve(job)
        kept.since = {held.job: kept.since.get(held.job, session.now) for held in book.reserved}
        kept.reserved = list(book.reserved)
        kept.plans = book.plans
        for held in book.reserved:
            session.wake_at(held.start)


def _starts(session: Session, job: SessionJob, work: TaskQueue | Worksheet) -> bool:
    """Place a job; returns whether it starts."""
    queue = session.queues[job.queue]
    if session.limits.overused(queue):
        return False
    session.work.jobs_tried += 1
    if isinstance(work, Worksheet):
        return allocate_job(session, queue, job, work)
    return allocate_flat(session, queue, job, work)
