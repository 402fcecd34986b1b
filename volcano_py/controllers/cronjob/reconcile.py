"""The actions that a CronJob needs now: cleanup, a new Job, or nothing until the next start. Pure.

Follows Kubernetes' CronJob controller, as Volcano's does. The Job is created between two steps, because the status
contains its UID: `reconcile` returns the Job to create, and `started` handles the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from volcano_py.api import names
from volcano_py.api.batch import COMPLETED, FAILED, TERMINATED, CronJob, CronJobStatus, Job
from volcano_py.api.cron import Every
from volcano_py.api.kinds import CRONJOB, JOB
from volcano_py.api.meta import ObjectReference, format_time, parse_time
from volcano_py.controllers.cronjob import timetable as times
from volcano_py.controllers.cronjob.timetable import NeverFires, Timetable, UnknownZone
from volcano_py.controllers.instructions import Delete, Emit, Instruction

FINISHED = (COMPLETED, FAILED, TERMINATED)
MINUTE = 60


class Start(Struct):
    """A Job to create."""

    manifest: dict[str, Any]
    at: float
    """The scheduled start time."""


class Decision(Struct):
    instructions: list[Instruction]
    """Instructions to execute first."""
    status: CronJobStatus
    """The status to write last, if it differs."""
    start: Start | None = None
    again: float | None = None
    """Seconds until the next reconcile; None: on the next change."""
    unusable: bool = False
    """The schedule or its time zone is invalid."""


class Observed(Struct):
    cronjob: CronJob
    now: float
    jobs: Sequence[Job] = ()
    """The Jobs that the CronJob owns."""


def jobs_of(cronjob: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """The Jobs that the CronJob controls."""
    metadata = cronjob.metadata
    return [
        job
        for job in jobs
        if job.metadata.namespace == metadata.namespace
        and (owner := job.metadata.controller) is not None
        and owner.kind == CRONJOB.kind
        and owner.uid == metadata.uid
    ]


def reconcile(seen: Observed) -> Decision:
    """Clean up, and determine whether to create a Job."""
    cronjob, spec = seen.cronjob, seen.cronjob.spec
    status = msgspec.structs.replace(cronjob.status, active=list(cronjob.status.active or ()) or None)
    decision = Decision([], status)
    if cronjob.metadata.deletion_timestamp is not None:
        return decision
    _finish(seen, decision)
    decision.instructions += _prune(cronjob, seen.jobs)
    _check_active(seen, decision)
    if spec.suspend:
        return decision
    try:
        table, own_zone = times.timetable(cronjob)
        if own_zone:
            message = "spec.schedule contains a time zone; spec.timeZone is ignored"
            decision.instructions.append(Emit("Warning", "UnsupportedSchedule", message, once=True))
        _schedule(seen, decision, table)
    except UnknownZone as error:
        return _unusable(decision, "InvalidTimeZone", f"spec.timeZone: {error}")
    except NeverFires as error:
        return _unusable(decision, "InvalidSchedule", f"spec.schedule {spec.schedule!r}: {error}")
    except ValueError as error:
        return _unusable(decision, "UnParseableCronJobSchedule", f"spec.schedule {spec.schedule!r}: {error}")
    return decision


def started(cronjob: CronJob, start: Start, job: Job | None) -> tuple[CronJobStatus, Emit | None]:
    """The status after `start`, given the Job that now has its name, created by this controller or earlier.

    A Job of another owner, or one that has already finished, is not changed.
    """
    status = cronjob.status
    if job is None:
        return status, None
    if not jobs_of(cronjob, [job]):
        message = f"job {job.metadata.name} exists and is not controlled by this CronJob: delete or rename it"
        return status, Emit("Warning", "ForeignJob", message, once=True)
    if job.status.state.phase in FINISHED:
        return status, None
    active = [*(status.active or ()), reference(job)]
    return msgspec.structs.replace(status, active=active, last_schedule_time=format_time(start.at)), None


def reference(job: Job) -> ObjectReference:
    """The entry of a Job in `status.active`."""
    return ObjectReference(
        api_version=JOB.api_version,
        kind=JOB.kind,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
        resource_version=job.metadata.resource_version,
    )


def make_job(cronjob: CronJob, at: float) -> dict[str, Any]:
    """The Job of a start: its name contains the minute, or the second if the schedule fires more than once a minute."""
    template = cronjob.spec.job_template
    made_from = template.metadata or {}
    rule = _rule(cronjob)
    fast = isinstance(rule, Every) and rule.seconds < MINUTE
    metadata = cronjob.metadata
    owner = {
        "apiVersion": CRONJOB.api_version,
        "kind": CRONJOB.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made: dict[str, Any] = {
        "name": f"{metadata.name}-{int(at) // MINUTE}" + (f"{int(at) % MINUTE:02}" if fast else ""),
        "namespace": metadata.namespace,
        "annotations": {
            **(made_from.get("annotations") or {}),
            names.CRONJOB_SCHEDULED_TIMESTAMP: _written(cronjob, at),
        },
        "ownerReferences": [owner],
    }
    if made_from.get("labels"):
        made["labels"] = dict(made_from["labels"])
    spec = msgspec.to_builtins(template.spec)
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": made, "spec": spec}


def _rule(cronjob: CronJob) -> object:
    try:
        return times.timetable(cronjob)[0].rule
    except ValueError:
        return None


def _written(cronjob: CronJob, at: float) -> str:
    """A start time in the CronJob's zone, as RFC 3339."""
    try:
        zone = times.find_zone(cronjob.spec.time_zone)
    except UnknownZone:
        zone = times.find_zone(None)
    return datetime.fromtimestamp(int(at), zone).isoformat().replace("+00:00", "Z")


def _unusable(decision: Decision, reason: str, message: str) -> Decision:
    decision.instructions.append(Emit("Warning", reason, message, once=True))
    decision.unusable = True
    return decision


def _finish(seen: Observed, decision: Decision) -> None:
    """Remove finished Jobs from the active ones, and record the last success."""
    status = decision.status
    for job in seen.jobs:
        phase = job.status.state.phase
        if phase not in FINISHED:
            continue
        kept = [one for one in status.active or () if one.uid != job.metadata.uid]
        if len(kept) < len(status.active or ()):
            status.active = kept or None
            message = f"saw completed job {job.metadata.name}, {phase}"
            decision.instructions.append(Emit("Normal", "SawCompletedJob", message))
        ended = job.status.state.last_transition_time
        last = status.last_successful_time
        if phase == COMPLETED and ended and (not last or parse_time(ended) > parse_time(last)):
            status.last_successful_time = ended


def _prune(cronjob: CronJob, jobs: Sequence[Job]) -> list[Instruction]:
    """Keep only the newest completed and failed Jobs."""
    instructions: list[Instruction] = []
    spec = cronjob.spec
    for phase, limit in ((COMPLETED, spec.successful_jobs_history_limit), (FAILED, spec.failed_jobs_history_limit)):
        if limit is None:
            continue
        ended = [job for job in jobs if job.status.state.phase == phase and job.metadata.deletion_timestamp is None]
        ended.sort(key=lambda job: (parse_time(job.metadata.creation_timestamp or format_time(0)), job.metadata.name))
        for job in ended[: max(0, len(ended) - limit)]:
            instructions += _delete(job.metadata.namespace, job.metadata.name, job.metadata.uid)
    return instructions


def _delete(namespace: str, name: str, uid: str) -> list[Instruction]:
    return [
        Delete(JOB, namespace, name, uid, blame="FailedDelete"),
        Emit("Normal", "SuccessfulDelete", f"deleted job {name}"),
    ]


def _orphans(seen: Observed, status: CronJobStatus) -> list[str]:
    """The names of the Jobs that run and are not in `status.active`: the controller ended, or the API server rejected
    the status, after the Job was created."""
    active = {one.uid for one in status.active or ()}
    return [
        job.metadata.name
        for job in seen.jobs
        if job.status.state.phase not in FINISHED and job.metadata.uid not in active
    ]


def _check_active(seen: Observed, decision: Decision) -> None:
    """Report Jobs that the status does not list; remove Jobs from it that no longer exist."""
    status = decision.status
    for name in _orphans(seen, status):
        message = f"job {name} runs but is not in status.active"
        decision.instructions.append(Emit("Warning", "OrphanedJob", message, once=True))
    there = {job.metadata.uid for job in seen.jobs}
    for one in status.active or ():
        if one.uid not in there:
            message = f"job {one.name} of status.active does not exist"
            decision.instructions.append(Emit("Warning", "StaleReference", message))
    status.active = [one for one in status.active or () if one.uid in there] or None


def _schedule(seen: Observed, decision: Decision, table: Timetable) -> None:
    cronjob, spec, status = seen.cronjob, seen.cronjob.spec, decision.status
    base = parse_time(status.last_schedule_time or cronjob.metadata.creation_timestamp or format_time(seen.now))
    missed = times.look_back(table, base, spec.starting_deadline_seconds, seen.now)
    if missed.too_many:
        message = f"more than {times.TOO_MANY} starts were missed; only the last one is caught up"
        decision.instructions.append(Emit("Warning", "TooManyMissedTimes", message, once=True))
    decision.again = times.until_next(table, base, seen.now)
    if missed.due is None:
        return
    manifest = make_job(cronjob, missed.due)
    name = manifest["metadata"]["name"]
    if any(one.name == name for one in status.active or ()):
        return
    running = [one.name for one in status.active or ()] or _orphans(seen, status)
    if spec.concurrency_policy == "Forbid" and running and name not in running:
        message = f"not started: {running[0]} still runs, and concurrencyPolicy is Forbid"
        decision.instructions.append(Emit("Warning", "ForbidConcurrent", message, once=True))
        return
    if spec.concurrency_policy == "Replace" and status.active:
        for one in status.active:
            message = f"job {one.name} is replaced by {name}"
            decision.instructions.append(Emit("Warning", "ReplaceConcurrent", message))
            decision.instructions += _delete(cronjob.metadata.namespace, one.name, one.uid)
        status.active = None
    decision.start = Start(manifest, missed.due)
