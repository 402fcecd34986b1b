"""gangpreempt: evict less important jobs of the same queue for a gang, within one domain. Volcano: action
gangpreempt."""

from __future__ import annotations

from volcano_py.scheduler.actions.eviction.gangs import (
    GangEvictionArguments,
    Policy,
    evict_for_gangs,
    running_or_bound,
    victim_job_is_evictable,
)
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


class GangPreempt(Action):
    """Evict pods of less important jobs of the same queue for starving gangs."""

    name = "gangpreempt"
    Arguments = GangEvictionArguments
    arguments: GangEvictionArguments

    def execute(self, session: Session) -> None:
        evict_for_gangs(session, Policy("gangpreempt", _may_evict, _worse, reclaims=False), self.arguments)


def _may_evict(session: Session, job: SessionJob, task: Task) -> bool:
    theirs = session.jobs[task.job]
    return (
        theirs is not job
        and theirs.queue == job.queue
        and theirs.priority < job.priority
        and task.preemptable
        and running_or_bound(session, task)
        and victim_job_is_evictable(theirs)
    )


def _worse(session: Session, left: SessionJob, right: SessionJob, _: SessionJob) -> bool:
    return not session.orders.job_key(left) < session.orders.job_key(right)
