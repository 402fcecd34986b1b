"""PodGroup statuses, Events about PodGroups, and conditions of pending pods. Volcano: closeSession, jobUpdater.

Only what differs from what the API server has is written.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api.scheduling import PodGroupCondition, PodGroupStatus
from volcano_py.scheduler.explain.messages import job_message, task_reason
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.session_jobs import SettledJobs, rests
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import reference
from volcano_py.scheduler.session_close.native_groups import report_native_group
from volcano_py.scheduler.session_close.stated_reasons import StatedReasons, is_reported, state_reason
from volcano_py.scheduler.session_close.waiting_pods import NO_ACTION, lacks_backfill

QUIET = 2.0
"""Seconds without a new pod after which a gang that lacks pods is reported. The API has seconds, so it is 1 to 2."""


def close_jobs(session: Session) -> None:
    """PodGroup statuses, Events about groups, and conditions of pods that wait.

    Jobs that rest and about which nothing was reported are settled: the next sessions skip them.
    """
    settled = []
    quiet = session.deviations.quiet_events
    for job in session.jobs.touched():
        phase = pod_group_phase(session, job)
        if session.deviations.finished_groups and phase == "Pending" and _stays_finished(job):
            phase = "Completed"
        if phase == "" and job.conditions is None:
            phase = "Pending"
        was = job.pod_group.status.phase
        job.phase = phase
        if quiet and phase == was == "Inqueue":
            if _is_being_created(session, job):
                continue
            if _is_being_bound(job):
                _report_tasks(session, job)
                continue
        unchanged = state_reason(session, job)
        # A shadow is not written: its admission must not outlive the session, or a restart would change decisions.
        status = _new_status(job, "Pending" if phase == "Inqueue" and job.model.shadow else phase)
        changed = not _same(job.pod_group.status, status, texts=not unchanged)
        meta = job.pod_group.metadata
        if changed:
            session.new_statuses[job.uid] = status
        if job.model.native is not None:
            report_native_group(session, job)
        elif changed and not job.model.shadow:
            urgent = phase == "Inqueue" and was != "Inqueue"
            decided = plan.PodGroupStatus(
                meta.namespace, meta.name, meta.uid, _as_dict(status), urgent, meta.resource_version
            )
            session.emit([decided])
        if not job.model.shadow and (not unchanged or not is_reported(session, job)):
            _report_job(session, job, changed)
        _report_tasks(session, job, unchanged)
        if not changed and rests(job.model) and ("PodGroup", job.uid) not in session.notes:
            settled.append(job.uid)
    session.cluster.keep(SettledJobs).settle(settled)
    for key, events in session.notes.items():
        _emit_events(session, key, events)


def pod_group_phase(session: Session, job: SessionJob) -> str:
    """The phase that follows from the tasks' statuses and from what gang found in this session."""
    counts = job.counts
    if counts[st.RUNNING] and _is_unschedulable(session, job):
        return "Unknown"
    scheduled = job.scheduled_num + job.releasing_scheduled_num(session.statuses)
    completed = counts[st.FAILED] + counts[st.SUCCEEDED]
    if scheduled >= job.min_available:
        return "Completed" if scheduled == completed else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"


def _is_being_created(session: Session, job: SessionJob) -> bool:
    """Whether the pods of an admitted gang are being created, one after another: it is reported when none has been
    added for a while."""
    newest = job.model.newest
    if abs(session.now - newest) >= QUIET or job.valid_num >= job.min_available or not job.tasks:
        return False
    session.wake_at(newest + QUIET)
    return True


def _is_being_bound(job: SessionJob) -> bool:
    """Whether an admitted job has become ready in this session: the phase Running, as soon as its pods are bound, and
    the condition Scheduled are one write."""
    binds = bool(job.counts[st.BINDING] + job.counts[st.ALLOCATED])
    return binds and job.is_ready()


def _stays_finished(job: SessionJob) -> bool:
    """Whether the group is Completed, and its pods are gone or finished."""
    return job.phase == "Completed" and job.counts[st.FAILED] + job.counts[st.SUCCEEDED] == len(job.tasks)


def _is_unschedulable(session: Session, job: SessionJob) -> bool:
    """Whether gang has found in this session that the gang is not ready."""
    conditions = job.pod_group.status.conditions if job.conditions is None else job.conditions
    return any(
        c.type == "Unschedulable" and c.status == "True" and c.transition_id == session.uid for c in conditions or ()
    )


def _new_status(job: SessionJob, phase: str) -> PodGroupStatus:
    c = job.counts
    return PodGroupStatus(
        phase=phase,
        conditions=job.pod_group.status.conditions if job.conditions is None else job.conditions,
        running=c[st.RUNNING],
        succeeded=c[st.SUCCEEDED],
        failed=c[st.FAILED],
    )


def _same(a: PodGroupStatus, b: PodGroupStatus, texts: bool) -> bool:
    """`texts`: whether a difference of nothing but messages counts."""
    if (a.phase, a.running, a.succeeded, a.failed) != (b.phase, b.running, b.succeeded, b.failed):
        return False
    if a.conditions is b.conditions:
        return True
    left, right = a.conditions or [], b.conditions or []
    same = _same_condition if texts else _same_meaning
    return len(left) == len(right) and all(map(same, left, right))


def _same_condition(a: PodGroupCondition, b: PodGroupCondition) -> bool:
    return (a.type, a.status, a.reason, a.message) == (b.type, b.status, b.reason, b.message)


def _same_meaning(a: PodGroupCondition, b: PodGroupCondition) -> bool:
    return (a.type, a.status, a.reason) == (b.type, b.status, b.reason)


def _as_dict(status: PodGroupStatus) -> dict[str, Any]:
    out: dict[str, Any] = {"phase": status.phase}
    if status.conditions:
        out["conditions"] = [
            {
                "type": c.type,
                "status": c.status,
                "transitionID": c.transition_id,
                "lastTransitionTime": c.last_transition_time,
                "reason": c.reason,
                "message": c.message,
            }
            for c in status.conditions
        ]
    out["running"], out["succeeded"], out["failed"] = status.running, status.succeeded, status.failed
    return out


def _report_job(session: Session, job: SessionJob, changed: bool) -> None:
    if job.phase in ("Unknown", "Pending", "Inqueue"):
        waiting = job.counts[st.PENDING]
        if session.deviations.quiet_events and not waiting:
            return
        message = f"{waiting}/{len(job.tasks)} tasks in gang unschedulable: {job_message(session, job)}"
        if session.deviations.quiet_events and session.cluster.reported.events.get(reference(job.uid)) == message:
            return
        session.note(job, "Warning", "Unschedulable", message)
    elif changed and not session.deviations.quiet_events:
        session.note(job, "Normal", "Scheduled", "pod group is ready")


def _report_tasks(session: Session, job: SessionJob, unchanged: bool = False) -> None:
    """`unchanged`: the reason of the job means the same as before, so that other numbers alone are not written."""
    c = job.counts
    if not (c[st.PENDING] or c[st.ALLOCATED] or c[st.PIPELINED]):
        return
    reported = session.cluster.reported.conditions
    operations = []
    whole = ""
    if session.deviations.quiet_events and job.valid_num < job.min_available:
        # the counts in the usual text change with every member that arrives
        whole = f"pod group is not ready: its gang is not complete, {job.min_available} members are needed"
    for task in job.tasks.values():
        status = session.statuses[task.slot]
        if task.sched_gated or status not in (st.PENDING, st.ALLOCATED, st.PIPELINED):
            continue
        if unchanged and status == st.PENDING and not job.last_transaction:
            known = reported.get(task.key)
            if known is not None and known[0] == "Unschedulable":
                continue
        reason, message, nominated = task_reason(session, job, task)
        if status == st.PENDING and lacks_backfill(session, task):
            message = NO_ACTION
        if not message:
            whole = whole or job_message(session, job)
            message = whole
        nominate = bool(nominated) and nominated != task.pod.status.nominated_node_name
        known = reported.get(task.key)
        same = known is not None and known[0] == reason if unchanged else known == (reason, message)
        if not same or nominate:
            operations.append(plan.PodCondition(task.namespace, task.name, task.uid, reason, message, nominated))
    if operations:
        session.emit(sorted(operations, key=lambda o: o.name))


def _emit_events(session: Session, key: tuple[str, str], events: list[plan.Event]) -> None:
    if session.deviations.stated_reasons:
        events = session.cluster.keep(StatedReasons).events(session, key, events)
    if events and session.deviations.quiet_events:
        known = session.cluster.reported.events.get((events[0].kind, f"{events[0].namespace}/{events[0].name}"))
        events = [e for e in events if e.message != known]
    if events:
        session.emit(events)
