"""CronJobs: schedules, what is made, kept and deleted."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tests.conformance.controllers.comparing import BECAUSE, NEVER_ASKED, Data, existing, in_a_loop, resting, same, see
from volcano_py.api.batch import CronJob, Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import format_time, parse_time
from volcano_py.controllers.cronjob import timetable as times
from volcano_py.controllers.cronjob.controller import CronJobController
from volcano_py.controllers.cronjob.reconcile import (
    Decision,
    Observed,
    jobs_of,
    make_job,
    reconcile,
    reference,
    started,
)
from volcano_py.controllers.instructions import Delete, Emit

BEFORE_TIME = "0001-01-01T00:00:00Z"
NOT_RECORDED = f"{NEVER_ASKED}without the schedule that the recording used"
TOLD_AT_ONCE = f"{BECAUSE}cron-mistakes"
BY_UID = f"{BECAUSE}cron-replaces-by-uid"
IRREGULAR = f"{BECAUSE}cron-missed-starts"


def cronjob_sync(case: Data) -> str:
    given, output, expected = case["input"], case["output"], case["output"]["expected"]
    cronjob = from_manifest(CronJob, given["cronJob"])
    jobs = [from_manifest(Job, job) for job in given["jobsOwned"]]
    now = parse_time(given["now"]) if given["now"] != BEFORE_TIME else 0.0
    decision = reconcile(Observed(cronjob, now, jobs))
    deleted = [one.name for one in decision.instructions if isinstance(one, Delete)]
    told = [one for one in decision.instructions if isinstance(one, Emit)]
    failed = decision.unusable
    created: list[str] = []
    if decision.start is not None:
        there, error = given.get("jobReturnedByGet"), given.get("createJobErr")
        if error and error.get("reason") != "AlreadyExists":
            failed = True
            told.append(Emit("Warning", "", ""))
        else:
            if error is None:
                created.append(decision.start.manifest["metadata"]["name"])
                told.append(Emit("Normal", "SuccessfulCreate", ""))
                there = _made(decision)
            named = from_manifest(Job, there)
            named.metadata.namespace = cronjob.metadata.namespace  # the recording's client was asked there
            after = msgspec.structs.replace(cronjob, status=decision.status)
            decision.status, event = started(after, decision.start, named)
            told += [event] if event else []
    if given.get("getJobErr") and expected["error"] and deleted:
        return BY_UID
    if failed != bool(expected["error"]):
        return f"failed: {failed}, expected {output.get('error')}"
    again = None if failed or decision.again is None else round(decision.again, 6)
    wanted = parse_duration(output["requeueAfter"]) if output["requeueAfter"] else None
    status = {} if failed else _status(msgspec.to_builtins(decision.status))
    wrong = (
        same(again, wanted)
        or (not failed and same(status, _status(output["status"])))
        or same(created, [job["metadata"]["name"] for job in output["createdJobs"]])
        or same(deleted, output.get("deletedJobs") or [])
    )
    if wrong:
        return wrong
    if len(told) != expected["eventsNum"]:
        return TOLD_AT_ONCE if decision.unusable else f"told {told}, expected {expected['eventsNum']}"
    return ""


def _made(decision: Decision) -> Data:
    """What the API server makes of a start."""
    assert decision.start is not None
    metadata = {**decision.start.manifest["metadata"], "uid": "made"}
    return {**decision.start.manifest, "metadata": metadata}


def _status(status: Data) -> Data:
    """`active` by name: the uids of made jobs are invented."""
    active = [one["name"] for one in status.get("active") or ()]
    times = {key: parse_time(status[key]) for key in ("lastScheduleTime", "lastSuccessfulTime") if status.get(key)}
    return {"active": active, **times}


def cronjob_schedule(case: Data) -> str:
    given, output = case["input"], case["output"]
    cronjob = from_manifest(CronJob, given["cj"])
    base = parse_time(cronjob.status.last_schedule_time or cronjob.metadata.creation_timestamp or "")
    now = parse_time(given["now"])
    table, _ = times.timetable(cronjob)
    deadline = cronjob.spec.starting_deadline_seconds
    try:
        match case["operation"]:
            case "nextScheduleTime":
                due = times.look_back(table, base, deadline, now).due
                if output.get("error"):
                    return NOT_RECORDED
                return same(_time(due), output["r0"])
            case "mostRecentScheduleTime":
                seen = times.look_back(table, base, deadline if given["includeStartingDeadlineSeconds"] else None, now)
                missed = 2 if seen.too_many else 1 if seen.some else 0
                wrong = same((_time(seen.earliest), missed), (output["r0"], output["r2"]))
                if not wrong and output["r1"] is None and seen.due is not None and seen.some:
                    return IRREGULAR
                return wrong or same(_time(seen.due), output["r1"])
            case "nextScheduleTimeDuration":
                return same(round(times.until_next(table, base, now), 6), parse_duration(output["r0"]))
    except times.NeverFires:
        return same(bool(output.get("error")), True)
    return f"operation {case['operation']} is not known"


def _time(moment: float | None) -> str | None:
    return None if moment is None else format_time(moment)


def cronjob_job_from_template(case: Data) -> str:
    cronjob = from_manifest(CronJob, case["input"]["cj"])
    made = make_job(cronjob, parse_time(case["input"]["scheduledTime"]))
    made["metadata"].pop("namespace")
    expected = case["output"]["job"]
    return same(made["metadata"], expected["metadata"]) or same(made["spec"], expected["spec"])


def cronjob_handlers(case: Data) -> str:
    given = case["input"]
    match case["operation"]:
        case "getJobsByCronJob":
            cronjob = from_manifest(CronJob, given["cronJob"])
            found = jobs_of(cronjob, [from_manifest(Job, job) for job in existing(case, "Job")])
            return same({job.metadata.name for job in found}, {job["metadata"]["name"] for job in case["output"]["r0"]})
        case "getRef":
            made = msgspec.to_builtins(reference(from_manifest(Job, given["object"])))
            return same(made, case["output"]["r0"])
        case "updateCronJob":
            return in_a_loop(lambda: _updated(given))
    return f"operation {case['operation']} is not known"


def _updated(given: Data) -> str:
    """A change of the schedule is looked at when it is time, any other at once."""
    cluster = resting()
    old, new = given["oldObj"], given["newObj"]
    now = parse_time((new.get("status") or {}).get("lastScheduleTime") or "2025-03-11T10:00:00Z")
    controller = CronJobController(cluster, clock=lambda: now)
    see(cluster, [old])
    waiting = len(controller.queue)
    see(cluster, [new])
    moved = any(old["spec"].get(key) != new["spec"].get(key) for key in ("schedule", "timeZone"))
    return same((waiting, bool(controller.queue._timers)), (1, moved and bool(new["spec"]["schedule"])))


RUNNERS: dict[str, Callable[[Data], str]] = {
    "cronjob_sync": cronjob_sync,
    "cronjob_schedule": cronjob_schedule,
    "cronjob_job_from_template": cronjob_job_from_template,
    "cronjob_handlers": cronjob_handlers,
}
