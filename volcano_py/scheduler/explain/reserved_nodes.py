"""What a reservation means for the job that has it. Not in Volcano."""

from __future__ import annotations

from datetime import UTC, datetime

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.reservations.book import book_of
from volcano_py.scheduler.framework.reservations.first_jobs import sizes_of_jobs
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st


def reservation_cause(session: Session, job: SessionJob) -> Cause | None:
    """When and where the job starts at the latest; None: nothing is reserved for it."""
    book = book_of(session)
    for ahead, held in enumerate(book.reserved if book is not None else ()):
        if held.job == job.uid and len(held.nodes):
            start = clock_time(held.start)
            node = session.table.names[int(held.nodes[0])]
            return table.JOB_RESERVED.because(count=len(held.nodes), node=node, start=start, ahead=ahead)
    return None


def later_cause(session: Session, job: SessionJob) -> Cause | None:
    """From when on nodes are held for a job that has no reservation, or why they are not; None: this is not known, or
    nodes are held for no job at all."""
    book = book_of(session)
    if book is None or not book.most or book.rule is None or any(held.job == job.uid for held in book.reserved):
        return None
    if job.uid in book.never:
        return table.NEVER_HELD.because()
    patience_ends = job.created + book.rule.patience_of(sizes_of_jobs(session)[job.uid])
    since = book.later.get(job.uid, patience_ends if session.now < patience_ends else None)
    if since is not None:
        return table.HELD_LATER.because(since=clock_time(since))
    before = [each.uid for each in book.first if each.counts[st.PENDING]]
    if len(book.reserved) < book.most or job.uid not in before:
        return None
    return table.HELD_AFTER_OTHERS.because(count=book.most, ahead=before.index(job.uid))


def reserved_for(session: Session) -> str:
    """The jobs for which nodes are reserved, the first of them by name."""
    book = book_of(session)
    jobs = [held.job for held in book.reserved] if book is not None else []
    return jobs[0] + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "") if jobs else "another job"


def clock_time(seconds: float) -> str:
    """In UTC, to the minute that has begun by then."""
    return datetime.fromtimestamp(-(-seconds // 60) * 60, UTC).strftime("%Y-%m-%d %H:%M UTC")
