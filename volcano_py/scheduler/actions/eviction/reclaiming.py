"""What reclaim may evict, and the entitled gangs of a session, which allocate and reclaim share. Volcano: the victims
of action reclaim."""

from __future__ import annotations

from volcano_py.scheduler.actions.eviction.entitled import EntitledGangs
from volcano_py.scheduler.actions.eviction.placed_tasks import Bools, PermittedVictims, PlacedTasks
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


def reclaims_for_entitled(session: Session) -> bool:
    """Whether pods are evicted for entitled gangs: with reclaim, and a plugin that shares the cluster among queues."""
    return (
        session.deviations.whole_gang_reclaim
        and session.limits.has_lenders
        and "reclaim" in session.configuration.actions
    )


def entitled_gangs(session: Session) -> EntitledGangs:
    """The entitled gangs of this session."""
    return session.shared(EntitledGangs, lambda: EntitledGangs(session, of_other_queues))


def of_other_queues(session: Session, job: SessionJob) -> PermittedVictims:
    """The running pods of other, reclaimable queues."""
    reclaimable: dict[str, bool] = {}

    def is_reclaimable(uid: str) -> bool:
        theirs = session.jobs.get(uid)
        found = reclaimable[uid] = (
            theirs is not None and theirs.queue != job.queue and session.queues[theirs.queue].reclaimable
        )
        return found

    def includes(victim: Task) -> bool:
        if session.statuses[victim.slot] != st.RUNNING or not victim.preemptable:
            return False
        found = reclaimable.get(victim.job)
        return is_reclaimable(victim.job) if found is None else found

    def among(placed: PlacedTasks) -> Bools:
        return placed.evictable() & ~placed.in_queue(job.queue)

    return PermittedVictims(includes, ("not in queue", job.queue), among, (st.RUNNING,))
