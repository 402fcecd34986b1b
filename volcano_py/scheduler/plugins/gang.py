"""gang: run all members of a gang or none. Volcano: plugin gang."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from volcano_py.api.meta import format_time
from volcano_py.api.scheduling import PodGroupCondition
from volcano_py.scheduler.explain.messages import job_message
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.extension_points.jobs import Invalid
from volcano_py.scheduler.framework.extension_points.victims import Basis
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.jobs.tree_surplus import TreeSurplus
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

_READY = "tasks in gang are ready to be scheduled"
_WHOLE = "the minimum is reached: {}"
"""The message of the condition Scheduled, which stays when the gang falls below its minimum."""
_WHOLE_PATTERN = re.compile(_WHOLE.format("([0-9]+)"))


@dataclass
class PartialGangs:
    """Gangs that run below their minimum: job → since when, in seconds since the epoch."""

    since: dict[str, float] = field(default_factory=dict)


class Gang(Plugin):
    """See `Arguments`."""

    name = "gang"

    class Arguments(PluginArguments):
        release_after: str = msgspec.field(default="5m", name="releaseAfter")
        """How long a gang that has lost members keeps its capacity while its other members are pending (deviation
        heal-gangs): a duration; 0: no limit."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.release_after = self.duration("release_after")

    def on_session_open(self, session: Session) -> None:
        statuses = session.statuses

        def valid(job: SessionJob) -> Invalid | None:
            if job.task_min_available and not job.check_task_valid(statuses):
                return Invalid("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling")
            if job.min_sub_jobs and not job.check_sub_jobs(lambda _: True):
                return Invalid("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling")
            if job.valid_num < job.min_available:
                return Invalid(
                    "NotEnoughTasks",
                    f"Not enough valid tasks for gang-scheduling, valid: {job.valid_num}, min: {job.min_available}",
                )
            return None

        def surplus(_: Task, candidates: list[Task]) -> list[Task]:
            return _surplus(session, candidates)

        def ready(job: SessionJob) -> bool:
            if not job.is_ready():
                return False
            if not job.task_min_available and not job.min_sub_jobs:  # as most jobs
                return True
            return job.check_task_ready(statuses) and job.check_sub_jobs(SubJob.is_ready)

        def pipelined(job: SessionJob) -> Vote:
            held = job.is_pipelined() and job.check_task_pipelined(statuses) and job.check_sub_jobs(SubJob.is_pipelined)
            return Vote.PERMIT if held else Vote.REJECT

        session.add_job_valid(valid)
        session.add_preemptable(surplus, basis=Basis.GANG_MINIMUM)
        session.add_reclaimable(surplus, basis=Basis.GANG_MINIMUM)
        session.add_unified_evictable(lambda _, candidates: candidates, basis=Basis.GANG_MINIMUM)
        session.add_job_order(lambda job: int(job.is_ready()), own=True)
        session.add_job_ready(ready, missing=lambda job, role: job.missing(role, statuses))
        session.add_job_pipelined(pipelined)
        session.add_sub_job_order(lambda sub: int(sub.is_ready()))
        session.add_sub_job_ready(lambda _, sub: sub.is_ready())
        session.add_sub_job_pipelined(lambda _, sub: Vote.PERMIT if sub.is_pipelined() else Vote.REJECT)
        session.add_job_starving(lambda job: job.is_starving())

    def on_session_close(self, session: Session) -> None:
        """Report for every job whether its gang is ready, and how many tasks are missing."""
        if session.deviations.heal_gangs:
            self._release(session)
        now = format_time(session.now)
        session.unready_jobs = []
        whole: dict[int, PodGroupCondition] = {}
        for job in session.jobs.touched():
            if not job.tasks:
                continue
            unready = 0
            if job.is_ready():
                minimum = job.min_available
                if minimum not in whole:  # gangs with equal minimums share it
                    whole[minimum] = PodGroupCondition(
                        type="Scheduled",
                        status="True",
                        transition_id=session.uid,
                        last_transition_time=now,
                        reason=_READY,
                        message=_WHOLE.format(minimum) if session.deviations.heal_gangs else "",
                    )
                condition = whole[minimum]
            elif healing(session, job):
                continue
            else:
                unready = job.min_available - _schedulable(session, job)
                session.unready_jobs.append(job.name)
                condition = PodGroupCondition(
                    type="Unschedulable",
                    status="True",
                    transition_id=session.uid,
                    last_transition_time=now,
                    reason="NotEnoughResources",
                    message=f"{unready}/{len(job.tasks)} tasks in gang unschedulable: {job_message(session, job)}",
                )
            session.set_condition(job, condition)
            session.job_gauges.append(("unschedule_task_count", job.namespace, job.name, unready))

    def _release(self, session: Session) -> None:
        """Evict gangs that run below their minimum while their pending members found no capacity for too long."""
        kept = session.cluster.keep(PartialGangs)
        known = kept.since
        partial = {j.uid: min(known.get(j.uid, session.now), session.now) for j in session.jobs.active() if _partial(j)}
        kept.since = partial
        for uid, since in list(partial.items()):
            if self.release_after > 0:
                session.wake_at(since + self.release_after)
            if 0 < self.release_after <= session.now - since:
                job = session.jobs[uid]
                text = f"gang below its minimum of {job.min_available} for {session.now - since:.0f} s"
                for task in job.tasks.values():
                    if session.status(task) in (st.BOUND, st.RUNNING):
                        session.moves.evict(task, text)
                session.note(
                    job, "Warning", "GangReleased", f"{text}: its pods release their capacity and start together"
                )
                del kept.since[uid]


def _surplus(session: Session, candidates: list[Task]) -> list[Task]:
    """As many of a job's candidates as the job has above its minimum; all of them for a job that is only
    evicted whole."""
    left: dict[str, int] = {}
    trees: dict[str, TreeSurplus] = {}
    victims = []
    for t in candidates:
        job = session.jobs.get(t.job)
        if job is None:
            continue
        if job.model.evicted_whole:
            if session.moves.may_evict_all(job):
                victims.append(t)
            continue
        if job.model.tree is not None:
            if t.job not in trees:
                trees[t.job] = TreeSurplus(job, job.model.tree)
            if trees[t.job].take(t):
                victims.append(t)
            continue
        ready = left.setdefault(t.job, job.ready_num)
        if ready > job.min_available:
            victims.append(t)
            left[t.job] = ready - 1
    return victims


def _partial(job: SessionJob) -> bool:
    """Some members run, fewer than the minimum with which the gang was whole, and the missing ones are pending or
    pipelined. A gang whose minimum was raised has lost nothing."""
    running = job.counts[st.RUNNING] + job.counts[st.BOUND]
    return (
        running > 0 and job.ready_num < min(job.min_available, _whole_with(job)) and job.min_available <= job.valid_num
    )


def _whole_with(job: SessionJob) -> int:
    """The minimum with which the gang was whole the last time, as its condition Scheduled records it; the present one
    if there is no record."""
    for condition in job.pod_group.status.conditions or ():
        if condition.type == "Scheduled" and (found := _WHOLE_PATTERN.fullmatch(condition.message or "")):
            return int(found[1])
    return job.min_available


def healing(session: Session, job: SessionJob) -> bool:
    """Whether the job's pods are terminating and none is pending: no condition is needed."""
    counts = job.counts
    if not counts[st.RELEASING] or counts[st.PENDING] or counts[st.PIPELINED]:
        return False
    leaving = job.releasing_scheduled_num(session.statuses)
    return leaving > 0 and job.scheduled_num + leaving >= job.min_available


def _schedulable(session: Session, job: SessionJob) -> int:
    """The number of tasks that have a node, or had one in a statement that was discarded."""
    last = job.last_transaction or {}
    return job.ready_num + sum(1 for t in session.pending(job) if t.key in last and st.IS_ALLOCATED[last[t.key][0]])
