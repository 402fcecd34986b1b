"""Conditions of native PodGroups, written when they change. Kubernetes: updatePodGroupCondition of kube-scheduler.

PodGroupScheduled is True when the gang has its minimum; it is False while pods of it wait and it has not. Since
Kubernetes 1.37 its name is PodGroupInitiallyScheduled, and once True it stays. Without such
pods nothing is reported: they are another scheduler's, or there are none. DisruptionTarget: the group was
evicted as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.api import gang
from volcano_py.api.gang import AnyGroup
from volcano_py.api.meta import Condition, format_time
from volcano_py.scheduler.explain.messages import job_message
from volcano_py.scheduler.explain.stated import WAITING
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import group_sub_job
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.native_gangs import condition_of
from volcano_py.scheduler.model.plan import NativeGroupStatus, PodCondition


def report_native_group(session: Session, job: SessionJob) -> None:
    """Write the conditions of a job's native groups that are not as they should be."""
    if job.model.tree is None:
        group = job.model.native
        assert group is not None
        _report(session, group, (_scheduled(session, job, group, job.is_ready()), _disrupted(session, job, group)))
        return
    ready = job.model.tree.holds(lambda name: job.sub_jobs[group_sub_job(job.uid, name)].is_ready())
    for at in job.model.tree.all_groups():
        mine = at.holds(lambda name: job.sub_jobs[group_sub_job(job.uid, name)].is_ready())
        below = [job.sub_jobs[group_sub_job(job.uid, leaf.name)] for leaf in at.pod_groups()]
        waits = any(sub.counts[s] for sub in below for s in _WAITING)
        scheduled = _scheduled(session, job, at.group, mine and ready, waits)
        _report(session, at.group, (scheduled, _disrupted(session, job, at.group)))


def _report(session: Session, group: AnyGroup, wanted: Iterable[Condition | None]) -> None:
    changed = [c for c in wanted if c is not None and not _same(condition_of(group, c.type), c)]
    if not changed:
        return
    now = format_time(session.now)
    conditions = []
    for c in changed:
        old = condition_of(group, c.type)
        since = old.last_transition_time if old is not None and old.status == c.status else now
        conditions.append(
            {
                "type": c.type,
                "status": c.status,
                "reason": c.reason,
                "message": c.message,
                "lastTransitionTime": since or now,
            }
        )
    meta, kind = group.metadata, NATIVE if isinstance(group, gang.PodGroup) else COMPOSITE
    session.emit([NativeGroupStatus(meta.namespace, meta.name, meta.uid, conditions, group.api_version, kind)])


def report_missing_group(session: Session, job: Job) -> None:
    """Say in the conditions of pods that their native group does not exist, or is invalid."""
    message = session.cluster.native_groups.obstacle(job.uid)
    known = session.cluster.reported.conditions
    waiting = (t for t in job.tasks.values() if t.status == st.PENDING and not t.sched_gated)
    conditions = [
        PodCondition(t.namespace, t.name, t.uid, gang.UNSCHEDULABLE, message)
        for t in sorted(waiting, key=lambda t: t.key)
        if known.get(t.key) != (gang.UNSCHEDULABLE, message)
    ]
    if conditions:
        session.emit(conditions)


def _scheduled(
    session: Session, job: SessionJob, group: AnyGroup, ready: bool, waits: bool | None = None
) -> Condition | None:
    """`ready`: whether the group has its minimum. `waits`: whether pods of it wait; None: ask the job."""
    if not job.tasks:
        return None
    initially = group.api_version != gang.API_VERSION
    type_ = gang.POD_GROUP_INITIALLY_SCHEDULED if initially else gang.POD_GROUP_SCHEDULED
    if isinstance(group, gang.CompositePodGroup):
        type_ = gang.COMPOSITE_INITIALLY_SCHEDULED
    before = condition_of(group, type_)
    if initially and before is not None and before.status == "True":
        return None
    if ready:
        return Condition(type=type_, status="True", reason=gang.SCHEDULED)
    if not (any(job.counts[s] for s in _WAITING) if waits is None else waits):
        return None
    return Condition(type=type_, status="False", reason=gang.UNSCHEDULABLE, message=_why(session, job))


def _why(session: Session, job: SessionJob) -> str:
    """The stated reason, which changes only when its meaning does."""
    conditions = job.pod_group.status.conditions if job.conditions is None else job.conditions
    stated = next((c for c in conditions or () if c.type == WAITING), None)
    return stated.message if stated is not None else job_message(session, job)


def _disrupted(session: Session, job: SessionJob, group: AnyGroup) -> Condition | None:
    """True in the session that evicts the group, False when its next pods have their places."""
    if not job.model.evicted_whole:
        return None
    before = condition_of(group, gang.DISRUPTION_TARGET)
    evicted = (session.status(t) == st.RELEASING and t.status != st.RELEASING for t in job.tasks.values())
    if job.counts[st.RELEASING] and any(evicted):
        message = "evicted as a whole for a more important job"
        return Condition(
            type=gang.DISRUPTION_TARGET, status="True", reason=gang.PREEMPTION_BY_SCHEDULER, message=message
        )
    if before is not None and before.status == "True" and job.is_ready() and not job.counts[st.RELEASING]:
        return Condition(type=gang.DISRUPTION_TARGET, status="False", reason=gang.SCHEDULED)
    return None


def _same(a: Condition | None, b: Condition) -> bool:
    return a is not None and (a.status, a.reason, a.message) == (b.status, b.reason, b.message)


_WAITING = (st.PENDING, st.ALLOCATED, st.PIPELINED)
