"""Pods that wait for something that no session will do: their PodGroup or queue is missing, or no action places them.

Not in Volcano, where such pods have neither a condition nor an Event (deviation explain-pods). The dispatcher adds an
Event to each new condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from volcano_py.api import names
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import reference
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.plan import PodCondition

UNSCHEDULABLE = "Unschedulable"
BACKFILL = "backfill"
SETTLE_SECONDS = 2.0
"""Seconds for which a PodGroup is missing before this is reported."""
GRACE_SECONDS = 10.0
"""Seconds for which nothing is reported about pods of a controller: it creates their PodGroup, too."""
NO_ACTION = (
    "the pod requests no resources, and the action backfill, which places such pods, is not configured: add it to "
    "actions of the scheduler, or set requests"
)


@dataclass
class MissingGroups:
    """Since when PodGroups are missing: job → seconds since the epoch."""

    since: dict[str, float] = field(default_factory=dict)


def report_missing_pod_groups(session: Session, jobs: Iterable[Job]) -> None:
    """State in the conditions of pods that their PodGroup does not exist. A pod can be known a moment before its
    PodGroup, as each kind has a watch of its own."""
    kept = session.cluster.keep(MissingGroups)
    missing = list(jobs)
    kept.since = {job.uid: kept.since.get(job.uid, session.now) for job in missing}
    for job in missing:
        due = kept.since[job.uid] + SETTLE_SECONDS
        if session.now < due:
            session.wake_at(due)
            continue
        message = (
            f"waiting for PodGroup {reference(job.uid)[1]}, which does not exist: create it, or correct the "
            f"annotation {names.GROUP_NAME}"
        )
        _report(session, [task for task in job.tasks.values() if _is_due(session, task)], message)


def report_missing_queue(session: Session, job: Job, message: str) -> None:
    """State in the conditions of pods that the queue of their job does not exist."""
    if session.deviations.explain_pods:
        _report(session, job.tasks.values(), message)


def _report(session: Session, tasks: Iterable[Task], message: str) -> None:
    known = session.cluster.reported.conditions
    conditions = [
        PodCondition(task.namespace, task.name, task.uid, UNSCHEDULABLE, message)
        for task in sorted(tasks, key=lambda task: task.key)
        if task.status == st.PENDING and not task.sched_gated and known.get(task.key) != (UNSCHEDULABLE, message)
    ]
    if conditions:
        session.emit(conditions)


def lacks_backfill(session: Session, task: Task) -> bool:
    """Whether no action places a pod, because it requests nothing."""
    return task.best_effort and session.deviations.explain_pods and BACKFILL not in session.configuration.actions


def _is_due(session: Session, task: Task) -> bool:
    metadata = task.pod.metadata
    if metadata.controller is None or not metadata.creation_timestamp:
        return True
    return session.now - parse_time(metadata.creation_timestamp) >= GRACE_SECONDS
