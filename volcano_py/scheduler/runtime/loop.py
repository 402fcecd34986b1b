"""CycleLoop: when a cycle runs. Volcano: Scheduler.Run with wait.Until.

* Never before every watched kind has been listed, nor without leadership, nor before a new leader has current lists
  (`cache.takeover`), nor while too many operations wait for their
  results.
* Soon after a change, at most 20 ms later and 20 ms after the cycle before, so that a burst of changes is one cycle.
* At once for a pod that is a job of its own, if no cycle has run in the last 20 ms: such a pod waits for no other one.
* Without a change once in `--schedule-period` while anything is pending, because some rules depend on the time.
* When nothing is pending, at the time that a plugin or action has declared (`Session.wake_at`), and otherwise once in
  `--idle-schedule-period`, for those that declare none.
* When pods and PodGroups of jobs change and nothing is pending, only statuses follow: their cycle waits for the next
  pending pod, or 0.2 s.
* Pods without a job (those of profiles and of other schedulers) cause no cycle while nothing is pending.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf

from volcano_py.api.core import Pod
from volcano_py.kube.health import Progress
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.framework.jobs.pending_jobs import any_waits

MIN_PAUSE = 0.02
"""Seconds between two cycles, in which changes are collected, and how long a burst may delay the first cycle."""
QUIET = 0.003
"""Seconds without a change after which a burst counts as over."""
STATUS_DELAY = 0.2
"""Seconds that a cycle waits which would only write statuses."""


class CycleLoop:
    """Calls `run_cycle()` in the event loop, which returns the seconds until a cycle is due without a change (infinite:
    none is declared). `wake()` reports that there may be work.
    `periods`: `--schedule-period` and `--idle-schedule-period`."""

    def __init__(
        self,
        cache: Cache,
        handle: DispatcherHandle,
        progress: Progress,
        periods: tuple[float, float],
        run_cycle: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._handle = handle
        self._progress = progress
        self._schedule_period, self._idle_period = periods[0], max(periods)
        self._run_cycle = run_cycle
        self._due = inf
        """When a cycle is due that was declared, in monotonic seconds."""
        self._changed = asyncio.Event()
        self._running = False
        self._alone = False
        """Whether a pod was added that is a job of its own."""
        self._ended = 0.0
        self._duration = 0.0

    def wake(self) -> None:
        """Look for work soon: the model, the leadership or the results have changed."""
        self._changed.set()
        if self._running:
            self._progress.due()

    def pod_added(self, pod: Pod) -> None:
        """A pod without a node was added to the model; after `wake`."""
        task = self._cache.model.tasks.get(pod.metadata.key)
        job = self._cache.model.jobs.get(task.job) if task is not None else None
        self._alone |= job is not None and job.shadow

    async def run(self, *synced: asyncio.Event) -> None:
        """Run cycles until cancelled, the first one after the cache is ready and all events in `synced` are set."""
        for event in (self._cache.ready, *synced):
            await event.wait()
        self._running = True
        while True:
            self._progress.working()
            await self._wait_for_work()
            self._changed.clear()
            self._alone = False
            if not self._handle.deciding or not self._handle.credits:
                # Results and leadership call `wake`.
                self._progress.idle()
                await self._changed.wait()
                continue
            begun = time.monotonic()
            declared = self._run_cycle()
            self._ended = time.monotonic()
            # Never sooner than a period, so that a declaration cannot keep the process busy.
            self._due = self._ended + max(declared, self._schedule_period)
            self._duration = self._ended - begun

    async def _wait_for_work(self) -> None:
        """Return when a cycle should run."""
        statuses_due: float | None = None
        while not self._must_decide():
            limit = None
            if self._handle.deciding and any_waits(self._cache.model):
                limit = max(0.0, self._ended + self._schedule_period - time.monotonic())
            elif self._handle.deciding and self._cache.model.jobs_moved:
                statuses_due = statuses_due or time.monotonic() + STATUS_DELAY
                limit = max(0.0, statuses_due - time.monotonic())
            elif self._handle.deciding:
                limit = max(0.0, min(self._ended + self._idle_period, self._due) - time.monotonic())
            if not self._changed.is_set():
                self._progress.idle(limit)
            try:
                async with asyncio.timeout(limit):
                    await self._changed.wait()
            except TimeoutError:
                return
            self._progress.working()
            self._changed.clear()
        await self._wait_for_burst_to_end()

    def _must_decide(self) -> bool:
        """Whether something has changed that a cycle decides about; other changes only wake the loop."""
        model = self._cache.model
        if model.dirty:
            return True
        return (model.jobs_moved or model.others_moved) and self._handle.deciding and any_waits(model)

    async def _wait_for_burst_to_end(self) -> None:
        # A burst of changes belongs to one cycle, but the wait is no longer than the last cycle was.
        begun = time.monotonic()
        if self._alone and begun >= self._ended + MIN_PAUSE:
            return
        latest = max(begun + MIN_PAUSE, self._ended + min(self._duration, self._schedule_period))
        pause = max(QUIET, self._ended + MIN_PAUSE - begun)
        while True:
            seen = self._cache.events
            await asyncio.sleep(pause)
            if seen == self._cache.events or time.monotonic() >= latest:
                return
            pause = QUIET
