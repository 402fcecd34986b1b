"""The status of a JobFlow: its Jobs by phase, and the phase history of each."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from volcano_py.api.batch import COMPLETED, FAILED, PENDING, RUNNING, TERMINATED, Job
from volcano_py.api.duration import parse_duration
from volcano_py.api.flow import FlowJobCondition, FlowJobStatus, JobFlowState, JobFlowStatus, RunningHistory
from volcano_py.api.meta import format_time, parse_time

_LISTED = (PENDING, RUNNING, FAILED, COMPLETED, TERMINATED)
IN_NO_LIST = ("Completing", "Terminating")


def status_of(jobs: Iterable[Job], before: JobFlowStatus, gone: Iterable[str], now: float) -> JobFlowStatus:
    """The status for these Jobs, with the phase unchanged.

    `gone` contains Jobs that were completed and have expired: their entries are kept.
    """
    lists: dict[str, list[str]] = {COMPLETED: list(gone)}
    known = {status.name: status for status in before.job_status_list or ()}
    previous = before.conditions or {}
    statuses = [known[name] for name in lists[COMPLETED] if name in known]
    conditions = {name: previous[name] for name in lists[COMPLETED] if name in previous}
    for job in jobs:
        name, phase = job.metadata.name, job.status.state.phase
        if phase not in IN_NO_LIST:
            lists.setdefault(phase if phase in _LISTED else "", []).append(name)
        statuses.append(_job_status(job, known.get(name), now))
        conditions[name] = FlowJobCondition(
            phase=phase,
            create_time=job.metadata.creation_timestamp,
            running_duration=job.status.running_duration,
            task_status_count=job.status.task_status_count,
        )
    return JobFlowStatus(
        pending_jobs=lists.get(PENDING),
        running_jobs=lists.get(RUNNING),
        failed_jobs=lists.get(FAILED),
        completed_jobs=lists[COMPLETED] or None,
        terminated_jobs=lists.get(TERMINATED),
        unknown_jobs=lists.get(""),
        job_status_list=statuses or None,
        conditions=conditions or None,
        state=JobFlowState(phase=before.state.phase),
    )


def histories(job: Job, before: FlowJobStatus | None, now: float) -> list[RunningHistory]:
    """The observed phases of a Job, one entry per change (a new Job has none)."""
    past = list(before.running_histories or ()) if before else []
    phase = job.status.state.phase
    if not phase or (past and past[-1].state == phase):
        return past
    if past:
        past[-1] = msgspec.structs.replace(past[-1], end_timestamp=format_time(now))
    return [*past, RunningHistory(start_timestamp=format_time(now), state=phase)]


def _job_status(job: Job, before: FlowJobStatus | None, now: float) -> FlowJobStatus:
    created, duration = job.metadata.creation_timestamp, job.status.running_duration
    ended = format_time(parse_time(created) + parse_duration(duration)) if created and duration else None
    return FlowJobStatus(
        name=job.metadata.name,
        state=job.status.state.phase,
        start_timestamp=created,
        end_timestamp=ended,
        restart_count=job.status.retry_count,
        running_histories=histories(job, before, now) or None,
    )
