"""gangreclaim: reclaim for a gang what other queues hold beyond their share, within one domain. Volcano: action
gangreclaim."""

from __future__ import annotations

from volcano_py.scheduler.actions.eviction.gangs import (
    GangEvictionArguments,
    Policy,
    evict_for_gangs,
    victim_job_is_evictable,
)
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


class GangReclaim(Action):
    """Evict pods of other, reclaimable queues for starving gangs."""

    name = "gangreclaim"
    Arguments = GangEvictionArguments
    arguments: GangEvictionArguments

    def execute(self, session: Session) -> None:
        evict_for_gangs(session, Policy("gangreclaim", _may_evict, _by_queue, reclaims=True), self.arguments)


def _may_evict(session: Session, job: SessionJob, task: Task) -> bool:
    theirs = session.jobs[task.job]
    return (
        theirs.queue != job.queue
        and session.queues[theirs.queue].reclaimable
        and task.preemptable
        and session.status(task) == st.RUNNING
        and victim_job_is_evictable(theirs)
    )


def _by_queue(session: Session, left: SessionJob, right: SessionJob, job: SessionJob) -> bool:
    queues = session.queues
    return session.orders.victim_queue_before(queues[left.queue], queues[right.queue], queues[job.queue])
