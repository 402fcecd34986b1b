"""The status of a batch Job. Kubernetes: the conditions and counts of job_controller.go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.controllers.batch import job_indexes
from volcano_py.sandbox.controllers.batch.job_plan import End, Tally, is_indexed

Object = dict[str, Any]


def stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def status_of(job: Object, seen: Tally, end: End | None, now: float) -> Object:
    """The status; the final condition is set after the last pod has ended and is counted."""
    old: Object = job.get("status") or {}
    suspended = bool(job["spec"].get("suspend"))
    noted = {key: uids for key, uids in seen.noted.items() if uids}
    status: Object = {
        "active": len(seen.active),
        "ready": sum(pod.ready for pod in seen.active),
        "terminating": len(seen.terminating),
        "succeeded": seen.counted["succeeded"],
        "failed": seen.counted["failed"],
        "uncountedTerminatedPods": noted,
    }
    if is_indexed(job):
        status["completedIndexes"] = job_indexes.render(seen.completed)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = job_indexes.render(seen.failed_indexes)
    started = old.get("startTime")
    if not suspended and (started is None or _was_suspended(old)):
        started = stamp(now)
    rows = _suspension(old.get("conditions") or [], suspended and end is None, now)
    if end is not None:
        rows = put(rows, end.target, "True", end.reason, end.message, now)
        if not seen.active and not seen.terminating and not noted:
            rows = put(rows, end.final, "True", end.reason, end.message, now)
            if end.final == "Complete":
                status["completionTime"] = old.get("completionTime") or stamp(now)
    status["conditions"] = rows
    if started is not None and not (suspended and end is None):
        status["startTime"] = started
    always = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
    return {key: value for key, value in status.items() if value or key in always}


def _was_suspended(old: Object) -> bool:
    rows = old.get("conditions") or ()
    return any(row["type"] == "Suspended" and row["status"] == "True" for row in rows)


def _suspension(rows: list[Object], suspended: bool, now: float) -> list[Object]:
    if suspended:
        return put(rows, "Suspended", "True", "JobSuspended", "Job suspended", now)
    if _was_suspended({"conditions": rows}):
        return put(rows, "Suspended", "False", "JobResumed", "Job resumed", now)
    return rows


def put(rows: list[Object], type_: str, value: str, reason: str, message: str, now: float) -> list[Object]:
    """The conditions with one of them set; an equal condition is not changed."""
    if any(row["type"] == type_ and row["status"] == value for row in rows):
        return rows
    at = stamp(now)
    row = {"type": type_, "status": value, "lastProbeTime": at, "lastTransitionTime": at}
    row |= {"reason": reason, "message": message}
    return [*(other for other in rows if other["type"] != type_), row]
