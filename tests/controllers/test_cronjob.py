"""CronJobs: when they start on whose clock, what they keep, and starts while no controller runs."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controllers.small_api import Denied
from tests.controllers.world import World, job, task
from volcano_py.api import kinds
from volcano_py.api.batch import CronJob, Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.cron import parse_schedule
from volcano_py.api.meta import format_time, parse_time
from volcano_py.controllers.cronjob import timetable as times
from volcano_py.controllers.cronjob.controller import failure
from volcano_py.controllers.cronjob.reconcile import Decision, Observed, make_job, reconcile, started
from volcano_py.controllers.cronjob.timetable import Timetable, find_zone
from volcano_py.controllers.instructions import Delete, Emit
from volcano_py.kube.errors import Forbidden

Manifest = dict[str, Any]
BORN = "2026-01-10T00:00:00Z"


def cronjob(schedule: str, name: str = "tick", created: str = BORN, last: str = "", **spec: Any) -> Manifest:
    plain = job(task(replicas=1))["spec"]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "lab", "uid": "cron-uid", "creationTimestamp": created},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": plain}, **spec},
        "status": {"lastScheduleTime": last} if last else {},
    }


def starts(schedule: str, zone: str, since: str, count: int) -> list[str]:
    """The next start times, on the clock of the zone."""
    table = Timetable(parse_schedule(schedule), find_zone(zone))
    moment: float | None = parse_time(since)
    found = []
    for _ in range(count):
        assert moment is not None
        moment = table.after(moment)
        assert moment is not None
        found.append(datetime.fromtimestamp(moment, find_zone(zone)).strftime("%m-%d %H:%M %Z"))
    return found


# ---- clocks that are changed


def test_in_spring_the_hour_that_is_left_out_brings_no_start() -> None:
    assert starts("30 2 * * *", "America/New_York", "2026-03-06T12:00:00Z", 3) == [
        "03-07 02:30 EST",
        "03-09 02:30 EDT",
        "03-10 02:30 EDT",
    ]
    assert starts("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2) == ["03-29 03:00 CEST", "03-29 04:00 CEST"]
    assert starts("*/30 1-3 * * *", "Europe/Berlin", "2026-03-28T23:59:00Z", 4) == [
        "03-29 01:00 CET",
        "03-29 01:30 CET",
        "03-29 03:00 CEST",
        "03-29 03:30 CEST",
    ]


def test_in_autumn_the_hour_that_comes_twice_brings_two_starts() -> None:
    assert starts("30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", 3) == [
        "11-01 01:30 EDT",
        "11-01 01:30 EST",
        "11-02 01:30 EST",
    ]
    assert starts("0 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3) == [
        "10-25 02:00 CEST",
        "10-25 02:00 CET",
        "10-26 02:00 CET",
    ]


def test_the_two_starts_of_one_time_on_the_clock_have_names_of_their_own() -> None:
    made_from = from_manifest(CronJob, cronjob("30 1 * * *", timeZone="America/New_York"))
    first, second = (make_job(made_from, parse_time(f"2026-11-01T{utc}:30:00Z"))["metadata"] for utc in ("05", "06"))
    assert first["name"] != second["name"]
    key = "volcano.sh/cronjob-scheduled-timestamp"
    assert first["annotations"][key] == "2026-11-01T01:30:00-04:00"
    assert second["annotations"][key] == "2026-11-01T01:30:00-05:00"


def test_days_that_begin_at_one_o_clock() -> None:
    assert starts("0 0,1 * * *", "America/Santiago", "2026-09-05T12:00:00Z", 3) == [
        "09-06 01:00 -03",
        "09-07 00:00 -03",
        "09-07 01:00 -03",
    ]


def test_half_an_hour_of_lord_howe() -> None:
    assert starts("15 * * * *", "Australia/Lord_Howe", "2026-04-04T13:20:00Z", 4) == [
        "04-05 01:15 +11",
        "04-05 02:15 +1030",
        "04-05 03:15 +1030",
        "04-05 04:15 +1030",
    ]


def test_an_interval_ignores_the_zone() -> None:
    assert starts("@every 1h", "America/New_York", "2026-03-08T06:10:00Z", 2) == ["03-08 03:10 EDT", "03-08 04:10 EDT"]


ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "America/Santiago", "Pacific/Apia")
FIELD = st.sampled_from(["*", "*/7", "0", "30", "15,45"])


@settings(max_examples=60, deadline=None)
@given(
    FIELD,
    st.sampled_from(["*", "2", "1-3", "0,23", "*/5"]),
    st.sampled_from(["*", "1", "29", "*/10"]),
    st.sampled_from(["*", "0", "1-5"]),
    st.sampled_from(ZONES),
    st.integers(1_700_000_000, 1_800_000_000),
)
def test_the_next_start_is_the_first_minute_that_fits(
    minute: str, hour: str, day: str, weekday: str, zone: str, moment: int
) -> None:
    """Against walking minute by minute, as far as two days."""
    rule = parse_schedule(f"{minute} {hour} {day} * {weekday}")
    table = Timetable(rule, find_zone(zone))
    found = table.after(moment)
    assert found is not None and found > moment
    at = (moment // 60 + 1) * 60
    while at < min(found, moment + 2 * 86_400):
        assert not _fits(rule, datetime.fromtimestamp(at, find_zone(zone))), at
        at += 60
    assert _fits(rule, datetime.fromtimestamp(found, find_zone(zone)))


def _fits(rule: Any, wall: datetime) -> bool:
    day, weekday = wall.day in rule.days, wall.isoweekday() % 7 in rule.weekdays
    fits = (day and weekday) if rule.any_day or rule.any_weekday else (day or weekday)
    return wall.minute in rule.minutes and wall.hour in rule.hours and wall.month in rule.months and fits


# ---- starts that were missed


def look(manifest: Manifest, now: str, *jobs: Job) -> Decision:
    return reconcile(Observed(from_manifest(CronJob, manifest), parse_time(now), jobs))


def start_of(decision: Decision) -> str:
    return format_time(decision.start.at) if decision.start else ""


def reasons(decision: Decision) -> list[str]:
    return [one.reason for one in decision.instructions if isinstance(one, Emit)]


def test_only_the_last_of_the_missed_starts_is_made_up_for() -> None:
    decision = look(cronjob("0 * * * *"), "2026-01-10T05:20:00Z")
    assert start_of(decision) == "2026-01-10T05:00:00Z" and reasons(decision) == []
    decision = look(cronjob("0 * * * *"), "2026-01-20T05:20:00Z")
    assert start_of(decision) == "2026-01-20T05:00:00Z" and reasons(decision) == ["TooManyMissedTimes"]


def test_an_uneven_schedule_makes_up_for_its_last_start_too() -> None:
    at_night = cronjob("30 10,11,12 * * 1-5", last="2026-01-12T10:30:00Z")
    assert start_of(look(at_night, "2026-01-13T16:30:00Z")) == "2026-01-13T12:30:00Z"
    yearly = cronjob("0 0 1 1 *", created="2020-06-01T00:00:00Z")
    assert start_of(look(yearly, "2026-06-01T00:00:00Z")) == "2026-01-01T00:00:00Z"


def test_a_deadline_limits_what_is_made_up_for() -> None:
    late = cronjob("0 * * * *", startingDeadlineSeconds=600)
    assert start_of(look(late, "2026-01-10T05:20:00Z")) == ""
    assert start_of(look(late, "2026-01-10T05:09:00Z")) == "2026-01-10T05:00:00Z"


def test_an_interval_longer_than_the_deadline_starts_all_the_same() -> None:
    every = cronjob("@every 1h", startingDeadlineSeconds=60)
    assert start_of(look(every, "2026-01-10T05:00:01Z")) == "2026-01-10T05:00:00Z"
    assert start_of(look(every, "2026-01-10T05:02:00Z")) == ""


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "every day"}, "UnParseableCronJobSchedule"),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
        ({"schedule": "0 0 * * *", "timeZone": "Mars/Base"}, "InvalidTimeZone"),
        ({"schedule": "TZ=Mars/Base 0 0 * * *"}, "InvalidTimeZone"),
    ],
)
def test_a_schedule_that_cannot_be_used_is_reported_once(spec: dict[str, Any], reason: str) -> None:
    decision = look(cronjob(**spec), "2026-01-10T05:20:00Z")
    assert reasons(decision) == [reason] and decision.start is None and decision.again is None
    assert all(one.once for one in decision.instructions if isinstance(one, Emit))


def test_a_zone_in_the_schedule_is_used_and_reported() -> None:
    decision = look(cronjob("CRON_TZ=Asia/Tokyo 0 9 * * *", timeZone="UTC"), "2026-01-10T03:00:00Z")
    assert start_of(decision) == "" and reasons(decision) == ["UnsupportedSchedule"]
    assert start_of(look(cronjob("CRON_TZ=Asia/Tokyo 0 9 * * *"), "2026-01-11T00:00:00Z")) == "2026-01-11T00:00:00Z"


# ---- what is running, what is kept


def owned(name: str, phase: str, created: str = BORN) -> Job:
    owner = {"apiVersion": kinds.CRONJOB.api_version, "kind": "CronJob", "name": "tick", "uid": "cron-uid"}
    return from_manifest(
        Job,
        {
            "metadata": {
                "name": name,
                "namespace": "lab",
                "uid": f"uid-{name}",
                "creationTimestamp": created,
                "ownerReferences": [owner | {"controller": True}],
            },
            "status": {"state": {"phase": phase, "lastTransitionTime": created}},
        },
    )


def active(*names: str) -> list[Manifest]:
    return [{"name": name, "uid": f"uid-{name}"} for name in names]


def test_forbid_waits_replace_deletes_allow_does_neither() -> None:
    running = owned("tick-1", "Running")
    for policy, begins, deleted in (("Forbid", False, []), ("Replace", True, ["tick-1"]), ("Allow", True, [])):
        manifest = cronjob("0 * * * *", concurrencyPolicy=policy)
        manifest["status"] = {"active": active("tick-1")}
        decision = look(manifest, "2026-01-10T05:20:00Z", running)
        assert (decision.start is not None) == begins
        assert [one.name for one in decision.instructions if isinstance(one, Delete)] == deleted
    assert reasons(look(cronjob("0 * * * *", suspend=True), "2026-01-10T05:20:00Z")) == []


def test_an_aborted_job_is_not_finished() -> None:
    manifest = cronjob("0 * * * *", concurrencyPolicy="Forbid")
    manifest["status"] = {"active": active("tick-1")}
    assert reasons(look(manifest, "2026-01-10T05:20:00Z", owned("tick-1", "Aborted"))) == ["ForbidConcurrent"]
    decision = look(manifest, "2026-01-10T05:20:00Z", owned("tick-1", "Terminated"))
    assert decision.start is not None and decision.status.active is None


def test_history_keeps_the_newest_and_never_prunes_the_terminated() -> None:
    jobs = [owned(f"tick-{n}", "Completed", f"2026-01-10T0{n}:00:00Z") for n in range(4)]
    jobs += [owned(f"bad-{n}", "Failed", f"2026-01-10T0{n}:00:00Z") for n in range(3)]
    jobs += [owned(f"end-{n}", "Terminated", f"2026-01-10T0{n}:00:00Z") for n in range(3)]
    manifest = cronjob("0 0 1 1 *", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0)
    decision = look(manifest, "2026-01-10T05:20:00Z", *jobs)
    gone = [one.name for one in decision.instructions if isinstance(one, Delete)]
    assert gone == ["tick-0", "tick-1", "bad-0", "bad-1", "bad-2"]
    assert decision.status.last_successful_time == "2026-01-10T03:00:00Z"


def test_a_job_that_was_made_before_a_crash_is_adopted() -> None:
    now = "2026-01-10T05:20:00Z"
    manifest = cronjob("0 * * * *")
    first = look(manifest, now)
    assert first.start is not None
    there = owned(first.start.manifest["metadata"]["name"], "Running")
    again = look(manifest, now, there)
    assert again.start is not None and reasons(again) == ["OrphanedJob"]
    status, event = started(from_manifest(CronJob, manifest), again.start, there)
    assert event is None and [one.uid for one in status.active or ()] == [there.metadata.uid]
    assert status.last_schedule_time == "2026-01-10T05:00:00Z"


def test_a_job_that_runs_and_is_not_in_the_status_forbids_another() -> None:
    """The controller was killed, or its status was rejected, after it had created the Job of the time before. Volcano
    starts a second one."""
    there = owned("tick-1", "Running")
    forbidden = look(cronjob("0 * * * *", concurrencyPolicy="Forbid"), "2026-01-10T05:20:00Z", there)
    assert forbidden.start is None and reasons(forbidden) == ["OrphanedJob", "ForbidConcurrent"]
    allowed = look(cronjob("0 * * * *"), "2026-01-10T05:20:00Z", there)
    assert allowed.start is not None and reasons(allowed) == ["OrphanedJob"]


def test_fast_intervals_have_seconds_in_their_names() -> None:
    fast = from_manifest(CronJob, cronjob("@every 10s"))
    made = {make_job(fast, parse_time(BORN) + 10 * n)["metadata"]["name"] for n in range(6)}
    assert len(made) == 6 and all(len(name) - len("tick-") == 10 for name in made)
    slow = from_manifest(CronJob, cronjob("@every 1m"))
    assert make_job(slow, parse_time(BORN))["metadata"]["name"] == f"tick-{int(parse_time(BORN)) // 60}"


def test_a_namespace_that_is_deleted_is_reported() -> None:
    causes = {"causes": [{"reason": "NamespaceTerminating", "message": "namespace lab is being terminated"}]}
    assert failure("tick-1", Forbidden(403, "Forbidden", "no", causes)).reason == "NamespaceTerminating"
    assert failure("tick-1", Forbidden(403, "Forbidden", "no")).reason == "FailedCreate"


# ---- with a server


async def test_a_cronjob_makes_jobs_and_tidies_up(world: World) -> None:
    world.api.clock = time.time() - 5
    world.api.put(cronjob("@every 1s", successfulJobsHistoryLimit=1))

    def live() -> list[str]:
        """Jobs are admitted and run to their end."""
        world.admit()
        world.run_pods("Succeeded")
        return world.events("SuccessfulDelete")

    await world.until(live)
    found = world.api.get(kinds.CRONJOB, "tick") or {}
    assert found["status"]["lastScheduleTime"] and found["status"]["lastSuccessfulTime"]
    assert "finalizers" not in found["metadata"] and "annotations" not in found["metadata"]
    world.api.delete(kinds.CRONJOB, "tick")
    await world.until(lambda: not jobs_of(world))
    await world.quiet()
    assert not jobs_of(world)


async def test_a_denied_job_is_reported_and_retried(world: World) -> None:
    def deny(method: str, path: str) -> Denied | None:
        return Denied(400, "BadRequest", "no such queue") if method == "POST" and path.endswith("/jobs") else None

    world.api.denial_of = deny
    world.api.clock = time.time() - 65
    world.api.put(cronjob("* * * * *"))
    await world.until(lambda: world.events("FailedCreate"))
    assert "no such queue" in world.events("FailedCreate")[0]
    world.api.denial_of = lambda method, path: None
    await world.until(lambda: jobs_of(world))


def jobs_of(world: World) -> list[Manifest]:
    return world.api.all(kinds.JOB)


def test_until_next_is_never_in_the_past() -> None:
    table, _ = times.timetable(from_manifest(CronJob, cronjob("*/5 * * * *")))
    born = parse_time(BORN)
    for seconds in (0.0, 0.05, 299.95, 300.0, 301.5):
        wait = times.until_next(table, born, born + seconds)
        assert 0 < wait <= 300.1
