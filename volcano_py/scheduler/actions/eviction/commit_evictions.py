"""What preempt and reclaim do with a job's plan when it is complete: all of it, or nothing.

First whoever need not go stays (deviation fewest-victims); then gangs that fall below their minimum fall as a whole
(deviation whole-gangs). Volcano: statement.Commit at the end of preempt and reclaim.
"""

from __future__ import annotations

from collections import Counter

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement, Step
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.task import Task


def commit_evictions(session: Session, statement: Statement, job: SessionJob, point: str, reason: str) -> None:
    """Commit the evictions if the job is pipelined by them, else take them back. `point`: where plugins were asked who
    may go."""
    good = session.job_pipelined(job)
    if good:
        _spare_needless(session, statement)
        good = _take_them_whole(session, statement, point, reason)
    statement.commit() if good else statement.discard()


def _spare_needless(session: Session, statement: Statement) -> None:
    """Let everybody stay without whom all that the statement promised is possible as well, the last evicted first.

    What one task of a gang needed may have become needless by what another one needed.
    """
    if not session.deviations.fewest_victims:
        return
    for step in [s for s in reversed(statement.steps) if s.kind == "evict"]:
        promised = [s for s in statement.steps if s.kind == "pipeline" and s.node == step.node]
        session.take_back_eviction(step.task)
        if all(_stands(session, p) for p in promised):
            statement.steps.remove(step)
        else:
            session.start_eviction(step.task)


def _stands(session: Session, promise: Step) -> bool:
    """Whether a promise could be made again as things are now."""
    task, node = promise.task, promise.node
    session.unplace(task)
    stands = session.placement.fits_soon(task, node) and session.placement.accepts(task, node)
    session.place(task, node, st.PIPELINED, hold=promise.evicted and session.deviations.kept_nominations)
    if promise.evicted:
        session.evicting.add(task.slot)
    return stands


def _take_them_whole(session: Session, statement: Statement, point: str, reason: str) -> bool:
    """Evict the rest of every gang that falls below its minimum; False, and nothing more done, if one of the rest may
    not go. `point`: where the plugin gang would have been asked."""
    if not _keeps_gangs(session, point):
        return True
    rest: list[Task] = []
    for job in _broken(session, statement):
        left = [t for t in job.tasks.values() if st.IS_ALLOCATED[session.status(t)]]
        evictable = [t for t in left if t.preemptable and session.status(t) in (st.BOUND, st.RUNNING)]
        if len(evictable) < len(left):
            return False
        rest += sorted(left, key=lambda t: t.key)
    if len(session.unprotected(rest)) < len(rest):
        return False
    for task in rest:
        statement.evict(task, reason)
    return True


def breaks_own_gang(session: Session, statement: Statement, job: SessionJob, point: str) -> bool:
    """Whether a job that takes places from itself has fewer than its minimum until others have taken them."""
    lost = sum(step.kind == "evict" and step.task.job == job.uid for step in statement.steps)
    return _keeps_gangs(session, point) and _falls(job, lost)


def _keeps_gangs(session: Session, point: str) -> bool:
    return session.deviations.whole_gangs and session.keeps_gangs(point)


def _broken(session: Session, statement: Statement) -> list[SessionJob]:
    """Gangs that had their minimum until this statement, other than the one that it is for."""
    evicted = (step.task.job for step in statement.steps if step.kind == "evict")
    lost = Counter(uid for uid in evicted if uid != statement.beneficiary)
    return [
        session.jobs[uid] for uid, count in lost.items() if uid in session.jobs and _falls(session.jobs[uid], count)
    ]


def _falls(job: SessionJob, lost: int) -> bool:
    """Whether it has fewer than its minimum, and had not before it lost so many."""
    return job.ready_num < job.min_available <= job.ready_num + lost
