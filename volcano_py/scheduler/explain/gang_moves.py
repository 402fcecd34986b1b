"""Which moves start a gang, for the gang that waits. Not in Volcano."""

from __future__ import annotations

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.planned_moves import planned_moves_of
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session


def moves_cause(session: Session, job: SessionJob) -> Cause | None:
    """What is moved for the job, or what a dry run would move; None: nothing."""
    found = planned_moves_of(session).get(job.uid)
    if found is None:
        return None
    reason = table.MOVES_MADE if found.made else table.MOVES_POSSIBLE
    return reason.because(count=len(found.moved), pods=found.text(session.table.names))
