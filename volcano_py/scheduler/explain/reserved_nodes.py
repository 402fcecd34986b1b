"""What a reservation means for the job that has it. Not in Volcano."""

from __future__ import annotations

from datetime import UTC, datetime

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.reservations.book import book_of
from volcano_py.scheduler.framework.session import Session


def reservation_cause(session: Session, job: SessionJob) -> Cause | None:
    """When and where the job starts at the latest; None: nothing is reserved for it."""
    book = book_of(session)
    for ahead, held in enumerate(book.reserved if book is not None else ()):
        if held.job == job.uid and len(held.nodes):
            start = clock_time(held.start)
            node = session.table.names[int(held.nodes[0])]
            return table.JOB_RESERVED.because(count=len(held.nodes), node=node, start=start, ahead=ahead)
    return None


def reserved_for(session: Session) -> str:
    """The jobs for which nodes are reserved, the first of them by name."""
    book = book_of(session)
    jobs = [held.job for held in book.reserved] if book is not None else []
    return jobs[0] + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "") if jobs else "another job"


def clock_time(seconds: float) -> str:
    """In UTC, to the minute that has begun by then."""
    return datetime.fromtimestamp(-(-seconds // 60) * 60, UTC).strftime("%Y-%m-%d %H:%M UTC")
