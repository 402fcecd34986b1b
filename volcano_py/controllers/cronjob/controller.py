"""Runs the CronJob reconciler."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec

from volcano_py.api.batch import CronJob, Job
from volcano_py.api.kinds import CRONJOB, JOB
from volcano_py.controllers.cronjob import timetable as times
from volcano_py.controllers.cronjob.reconcile import Decision, Observed, jobs_of, reconcile, started
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Create, Emit
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import LONGEST_SLEEP, Cluster
from volcano_py.kube.errors import ApiError, Conflict, KubeError
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)


class CronJobController:
    name = "cronjob-controller"

    def __init__(self, cluster: Cluster, *, workers: int = 3, clock: Callable[[], float] = time.time) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self.workers = workers
        self._clock = clock
        self._executor = cluster.executor
        self._cronjobs: Mirror[CronJob] = cluster.mirror(CRONJOB)
        self._jobs: Mirror[Job] = cluster.mirror(JOB)
        self._cronjobs.on(add=lambda cronjob: self.queue.add(cronjob.key), update=self._updated)
        moved = self._job_moved
        self._jobs.on(add=moved, update=lambda old, new: moved(new), delete=moved)

    async def process(self, key: str) -> None:
        cronjob = self._cronjobs.get(key)
        if cronjob is None:
            self.queue.forget(key)
            return
        jobs = jobs_of(cronjob, self._jobs.by_index(cronjob.metadata.uid))
        decision = reconcile(Observed(cronjob, self._clock(), jobs))
        try:
            await self._carry_out(cronjob, decision)
        except Conflict:
            self.queue.add_after_conflict(key)
            return
        self.queue.forget(key)
        if decision.again is not None:
            self.queue.add_after(key, min(LONGEST_SLEEP, decision.again))

    async def _carry_out(self, cronjob: CronJob, decision: Decision) -> None:
        try:
            await self._executor.carry_out(decision.instructions, cronjob)
            if decision.start is not None:
                await self._start(cronjob, decision)
        except ApiError:
            await self._write(cronjob, decision)  # the status is valid although the job was not created
            raise
        await self._write(cronjob, decision)

    async def _start(self, cronjob: CronJob, decision: Decision) -> None:
        """Create the job, unless its name is taken."""
        assert decision.start is not None
        manifest = decision.start.manifest
        name = manifest["metadata"]["name"]
        key = f"{cronjob.metadata.namespace}/{name}"
        if self._jobs.get(key) is None:
            created = Emit("Normal", "SuccessfulCreate", f"created job {name}")
            try:
                await self._executor.carry_out([Create(JOB, manifest, event=created)], cronjob)
            except KubeError as error:
                self._executor.record(cronjob, failure(name, error))
                raise
        after = msgspec.structs.replace(cronjob, status=decision.status)
        decision.status, event = started(after, decision.start, self._jobs.get(key))
        if event is not None:
            self._executor.record(cronjob, event)

    async def _write(self, cronjob: CronJob, decision: Decision) -> None:
        if decision.status != cronjob.status:
            await self._executor.carry_out([status_write(CRONJOB, cronjob, decision.status)], cronjob)

    def _updated(self, old: CronJob, new: CronJob) -> None:
        """A changed schedule does not catch up on missed starts: it begins with its next start."""
        if (old.spec.schedule, old.spec.time_zone) == (new.spec.schedule, new.spec.time_zone):
            self.queue.add(new.key)
            return
        now = self._clock()
        try:
            following = times.timetable(new)[0].after(now)
        except ValueError as error:
            message = f"spec.schedule {new.spec.schedule!r}: {error}"
            self._executor.record(new, Emit("Warning", "UnParseableCronJobSchedule", message, once=True))
            return
        if following is not None:
            self.queue.add_after(new.key, following + times.DELTA_SECONDS - now)

    def _job_moved(self, job: Job) -> None:
        owner = job.metadata.controller
        if owner is not None and owner.kind == CRONJOB.kind:
            self.queue.add(f"{job.metadata.namespace}/{owner.name}")


def failure(name: str, error: KubeError) -> Emit:
    """The Event for a job that cannot be created."""
    causes = (error.details.get("causes") or []) if isinstance(error, ApiError) else []
    if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return Emit("Warning", "NamespaceTerminating", f"job {name} was not created: {error}", once=True)
    return Emit("Warning", "FailedCreate", f"job {name} cannot be created: {error}")
