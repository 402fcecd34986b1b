"""CronJobs in virtual time: jobs that last, fail or hang, a controller that is away, and writes that get lost."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.api.batch import CronJob, Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import format_time, parse_time
from volcano_py.controllers.cronjob import timetable as times
from volcano_py.controllers.cronjob.reconcile import FINISHED, Observed, jobs_of, reconcile, started
from volcano_py.controllers.instructions import Delete

BORN = 1_767_225_600.0  # 2026-01-01T00:00:00Z
SCHEDULES = ("*/5 * * * *", "7 * * * *", "@every 90s", "@every 20s", "30 1-3 * * *")
LIMIT = 2

policy = st.sampled_from(["Allow", "Forbid", "Replace"])
event = st.tuples(
    st.floats(1, 4000),  # seconds until it happens
    st.sampled_from(["look", "look", "look", "finish", "fail", "crash", "vanish"]),
)


class Clockwork:
    """A CronJob, its jobs, and the controller's two halves with a fault between them now and then."""

    def __init__(self, schedule: str, concurrency: str, deadline: int | None) -> None:
        spec: dict[str, Any] = {"schedule": schedule, "concurrencyPolicy": concurrency}
        limits = {"successfulJobsHistoryLimit": LIMIT, "failedJobsHistoryLimit": LIMIT}
        limits |= {"startingDeadlineSeconds": deadline} if deadline else {}
        metadata = {"name": "c", "namespace": "n", "uid": "cron", "creationTimestamp": format_time(BORN)}
        self.cronjob = from_manifest(CronJob, {"metadata": metadata, "spec": {**spec, **limits}})
        self.table, _ = times.timetable(self.cronjob)
        self.now = BORN
        self.jobs: dict[str, Job] = {}
        self.ever: dict[str, float] = {}

    def look(self, *, crash: bool = False) -> None:
        """Reconcile; with `crash` the controller ends after the job was made and before the status was written."""
        owned = jobs_of(self.cronjob, self.jobs.values())
        decision = reconcile(Observed(self.cronjob, self.now, owned))
        assert decision.again is None or decision.again > 0
        for one in decision.instructions:
            if isinstance(one, Delete):
                self.jobs.pop(one.name)
        if decision.start is not None:
            name = decision.start.manifest["metadata"]["name"]
            self._check_start(name, decision.start.at)
            if name not in self.jobs:
                made = from_manifest(Job, decision.start.manifest)
                made.metadata.uid = f"uid-{len(self.ever)}"
                made.metadata.creation_timestamp = format_time(self.now)
                made.status.state.phase = "Running"
                self.jobs[name] = made
                self.ever[name] = decision.start.at
            after = msgspec.structs.replace(self.cronjob, status=decision.status)
            decision.status, _ = started(after, decision.start, self.jobs[name])
        if not crash:
            self.cronjob = msgspec.structs.replace(self.cronjob, status=decision.status)

    def _check_start(self, name: str, at: float) -> None:
        """It is one of the schedule's times, not before its turn, and not too late; each is started once."""
        deadline = self.cronjob.spec.starting_deadline_seconds
        assert at <= self.now and (deadline is None or at >= self.now - deadline)
        assert self.table.after(at - 1) == at or self.cronjob.spec.schedule.startswith("@")
        following = self.table.after(at)
        assert following is not None and following > self.now, "an older start than the last one"
        running = [one for one in self.jobs.values() if one.status.state.phase not in FINISHED]
        if self.cronjob.spec.concurrency_policy != "Allow":
            known = {one.uid for one in self.cronjob.status.active or ()}
            assert not [one for one in running if one.metadata.uid in known and one.metadata.name != name]
        assert self.ever.get(name, at) == at

    def end(self, phase: str) -> None:
        """The job that has run longest ends."""
        for job in self.jobs.values():
            if job.status.state.phase == "Running":
                job.status.state.phase = phase
                job.status.state.last_transition_time = format_time(self.now)
                return

    def vanish(self) -> None:
        """A user deletes a job."""
        if self.jobs:
            self.jobs.pop(next(iter(self.jobs)))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SCHEDULES), policy, st.sampled_from([None, 30, 600]), st.lists(event, min_size=5, max_size=40))
def test_starts_happen_once_in_time_and_history_is_kept_short(
    schedule: str, concurrency: str, deadline: int | None, events: list[tuple[float, str]]
) -> None:
    work = Clockwork(schedule, concurrency, deadline)
    for seconds, what in events:
        work.now += seconds
        match what:
            case "look":
                work.look()
            case "crash":
                work.look(crash=True)
                work.look()  # whoever comes next finds what was made
            case "finish" | "fail":
                work.end("Completed" if what == "finish" else "Failed")
                work.look()
            case "vanish":
                work.vanish()
                work.look()
    work.look()
    status = work.cronjob.status
    active = {one.uid for one in status.active or ()}
    running = {one.metadata.uid for one in work.jobs.values() if one.status.state.phase not in FINISHED}
    assert active == running
    for phase in ("Completed", "Failed"):
        assert sum(one.status.state.phase == phase for one in work.jobs.values()) <= LIMIT
    if status.last_schedule_time:
        assert parse_time(status.last_schedule_time) in work.ever.values()


def test_every_start_happens_while_a_controller_runs() -> None:
    """A controller that reconciles when scheduled misses no start, and none is late."""
    for schedule in SCHEDULES:
        work = Clockwork(schedule, "Allow", 30)
        expected = []
        moment = work.table.after(BORN)
        while moment is not None and moment < BORN + 86_400:
            expected.append(moment)
            moment = work.table.after(moment)
        expected = expected[:300]
        while work.now < expected[-1]:
            decision = reconcile(Observed(work.cronjob, work.now, jobs_of(work.cronjob, work.jobs.values())))
            assert decision.again is not None
            work.now += decision.again
            work.look()
            work.end("Completed")
        assert list(work.ever.values()) == expected, schedule
