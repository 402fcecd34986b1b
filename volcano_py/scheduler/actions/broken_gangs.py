"""What becomes of a gang of which preempt or reclaim takes a part (deviation whole-gangs)."""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.task import Task


def take_them_whole(session: Session, statement: Statement, point: str, reason: str) -> bool:
    """Evict the rest of every gang that falls below its minimum; False, and nothing more done, if one of the rest may
    not go. `point`: where the plugin gang would have been asked."""
    if not session.on("whole-gangs") or all(plugin != "gang" for plugin, _ in session.votes.enabled(point)):
        return True
    rest: list[Task] = []
    for job in _broken(session, statement):
        left = [t for t in job.tasks.values() if st.IS_ALLOCATED[session.status(t)]]
        evictable = [t for t in left if t.preemptable and session.status(t) in (st.BOUND, st.RUNNING)]
        if len(evictable) < len(left):
            return False
        rest += sorted(left, key=lambda t: t.key)
    if len(session.votes.unprotected(rest)) < len(rest):
        return False
    for task in rest:
        statement.evict(task, reason)
    return True


def _broken(session: Session, statement: Statement) -> list[SessionJob]:
    """Gangs that had their minimum until this statement, other than the one that it is for."""
    lost: dict[str, int] = {}
    for step in statement.steps:
        if step.kind == "evict" and step.task.job != statement.beneficiary:
            lost[step.task.job] = lost.get(step.task.job, 0) + 1
    jobs = [(session.jobs[uid], count) for uid, count in lost.items() if uid in session.jobs]
    return [job for job, count in jobs if job.ready_num < job.min_available <= job.ready_num + count]
