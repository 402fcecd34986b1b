"""Closing a session: what it says about jobs, tasks and queues. Volcano: closeSession, job updater, queue
status.

Only what differs from what the API server has is written. Everything goes out through `session.emit`.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api import quantity
from volcano_py.api.scheduling import ROOT_QUEUE, PodGroupCondition, PodGroupStatus
from volcano_py.scheduler.explain.messages import job_message, task_reason
from volcano_py.scheduler.framework.guarantee import excess
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import CPU, MEMORY, PODS, Resource


def close_jobs(session: Session) -> None:
    """PodGroup statuses, Events about groups, and conditions of pods that wait."""
    for job in session.jobs.values():
        if job.model.shadow:
            _tell_tasks(session, job)
            continue
        phase = pod_group_phase(session, job)
        if phase == "" and job.conditions is None:
            phase = "Pending"
        status = _new_status(job, phase)
        changed = not _same(job.pod_group.status, status)
        was = job.pod_group.status.phase
        job.phase = phase
        meta = job.pod_group.metadata
        if changed:
            urgent = phase == "Inqueue" and was != "Inqueue"
            session.new_statuses[job.uid] = status
            decided = plan.PodGroupStatus(
                meta.namespace, meta.name, meta.uid, _as_dict(status), urgent, meta.resource_version
            )
            session.emit([decided])
        _tell_job(session, job, changed)
        _tell_tasks(session, job)
    for events in session.notes.values():
        _emit_notes(session, events)


def pod_group_phase(session: Session, job: SessionJob) -> str:
    """The phase that follows from the tasks' statuses and from what gang found in this session."""
    conditions = job.pod_group.status.conditions if job.conditions is None else job.conditions
    unschedulable = any(
        c.type == "Unschedulable" and c.status == "True" and c.transition_id == session.uid for c in conditions or ()
    )
    counts = job.counts
    if unschedulable and counts[st.RUNNING]:
        return "Unknown"
    scheduled = job.scheduled_num + job.releasing_scheduled_num(session.statuses)
    completed = counts[st.FAILED] + counts[st.SUCCEEDED]
    if scheduled >= job.min_available:
        return "Completed" if scheduled == completed else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"


def _new_status(job: SessionJob, phase: str) -> PodGroupStatus:
    c = job.counts
    return PodGroupStatus(
        phase=phase,
        conditions=job.pod_group.status.conditions if job.conditions is None else job.conditions,
        running=c[st.RUNNING],
        succeeded=c[st.SUCCEEDED],
        failed=c[st.FAILED],
    )


def _same(a: PodGroupStatus, b: PodGroupStatus) -> bool:
    if (a.phase, a.running, a.succeeded, a.failed) != (b.phase, b.running, b.succeeded, b.failed):
        return False
    if a.conditions is b.conditions:
        return True
    left, right = a.conditions or [], b.conditions or []
    return len(left) == len(right) and all(map(_same_condition, left, right))


def _same_condition(a: PodGroupCondition, b: PodGroupCondition) -> bool:
    return (a.type, a.status, a.reason, a.message) == (b.type, b.status, b.reason, b.message)


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


def _tell_job(session: Session, job: SessionJob, changed: bool) -> None:
    key = ("PodGroup", job.uid)
    if job.phase in ("Unknown", "Pending", "Inqueue"):
        waiting = job.counts[st.PENDING]
        if session.deviations.quiet_events and not waiting:
            return
        message = f"{waiting}/{len(job.tasks)} tasks in gang unschedulable: {job_message(session, job)}"
        if session.deviations.quiet_events and session.cluster.reported.events.get(key) == message:
            return
        session.note(job, "Warning", "Unschedulable", message)
    elif changed:
        session.note(job, "Normal", "Scheduled", "pod group is ready")


def _tell_tasks(session: Session, job: SessionJob) -> None:
    c = job.counts
    if not (c[st.PENDING] or c[st.ALLOCATED] or c[st.PIPELINED]):
        return
    told = session.cluster.reported.conditions
    operations = []
    whole = ""
    if session.deviations.quiet_events and job.valid_num < job.min_available:
        # the counts in the usual text change with every member that arrives
        whole = f"pod group is not ready: its gang is not complete, {job.min_available} members are needed"
    for task in job.tasks.values():
        status = session.statuses[task.slot]
        if task.sched_gated or status not in (st.PENDING, st.ALLOCATED, st.PIPELINED):
            continue
        reason, message, nominated = task_reason(session, job, task)
        if not message:
            whole = whole or job_message(session, job)
            message = whole
        nominate = bool(nominated) and nominated != task.pod.status.nominated_node_name
        if told.get(task.key) != (reason, message) or nominate:
            operations.append(plan.PodCondition(task.namespace, task.name, task.uid, reason, message, nominated))
    if operations:
        session.emit(sorted(operations, key=lambda o: o.name))


def _emit_notes(session: Session, events: list[plan.Event]) -> None:
    if session.deviations.quiet_events:
        known = session.cluster.reported.events.get((events[0].kind, f"{events[0].namespace}/{events[0].name}"))
        events = [e for e in events if e.message != known]
    if events:
        session.emit(events)


def close_queues(session: Session) -> None:
    """status.allocated of every queue: what its jobs and those of the queues below it hold."""
    allocated = {name: Resource() for name in session.queues}
    for job in session.jobs.values():
        if not job.allocated_num:
            continue
        held = _held(session, job)
        for above in _upwards(session, session.queues[job.queue]):
            allocated[above].add(held)
    for name, amount in allocated.items():
        queue = session.queues[name]
        new = as_quantities(amount)
        old = queue.object.status.allocated or {}
        if {k: quantity.parse(v) for k, v in old.items()} != {k: quantity.parse(v) for k, v in new.items()}:
            session.emit([plan.QueueStatus(name, new, queue.object.metadata.resource_version)])
        _tell_queue(session, queue)


def _held(session: Session, job: SessionJob) -> Resource:
    """What the job holds; resources of which it has given all back in this session are not named."""
    if all((job.allocated.scalars or {}).values()):
        return job.allocated
    held = Resource()
    for task in job.tasks.values():
        if st.IS_ALLOCATED[session.status(task)]:
            held.add(task.request)
    return held


def _tell_queue(session: Session, queue: Queue) -> None:
    """An Event on a queue that contradicts itself or others, when that has changed."""
    wrong = []
    names = excess(queue) if session.deviations.capability_first else ()
    if names:
        fields = " and ".join(f"spec.guarantee.resource.{name}" for name in names)
        what = "nothing above the capability is kept for the queue"
        wrong.append(f"{fields} above spec.capability: {what}; change one of them")
    if session.deviations.partial_hierarchy and queue.name in session.queue_faults:
        wrong.append(f"{session.queue_faults[queue.name]}. Until then it is taken for a queue below root")
    text = ". ".join(wrong)
    if text and session.cluster.reported.events.get(("Queue", f"/{queue.name}")) != text:
        uid = queue.object.metadata.uid
        session.emit([plan.Event("Queue", "", queue.name, uid, "Warning", "InvalidQueue", text)])


def _upwards(session: Session, queue: Queue) -> list[str]:
    """The queue and its ancestors up to root; stops at an unknown or already visited queue."""
    found = [queue.name]
    if ROOT_QUEUE not in session.queues:
        return found
    while queue.name != ROOT_QUEUE:
        parent = session.queue_parents[queue.name] if session.deviations.partial_hierarchy else queue.parent
        above = session.queues.get(parent or ROOT_QUEUE)
        if above is None or above.name in found:
            break
        found.append(above.name)
        queue = above
    return found


def as_quantities(amount: Resource) -> dict[str, str]:
    """An amount as a resource list; cpu and memory are always named."""
    out = {
        CPU: quantity.format_milli(int(amount.milli_cpu)),
        MEMORY: quantity.format_binary(int(amount.memory)),
    }
    for name, value in (amount.scalars or {}).items():
        out[name] = str(int(value)) if name == PODS else quantity.format_milli(int(value))
    return out
