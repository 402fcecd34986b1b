"""PodLoop: when pods of profiles are tried. Kubernetes: Scheduler.Run and SchedulingQueue.Run.

A pod is tried as soon as it arrives, between two cycles of the session. A slice of attempts is bounded by the nodes
that it looks at; then events, results and the session get their turn, so that both kinds of workload make progress.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.model.cluster import Cluster

SLICE = 20_000
"""Nodes that the attempts of one slice look at, about."""


class PodLoop:
    """Calls `attempt(now)`, which returns whether there was a pod to try, and `tick(now)` at every whole second.

    `has_time()`: whether `tick` may have something to do later. `wake()` reports that there may be work. Times are
    monotonic, in seconds.
    """

    def __init__(
        self,
        model: Cluster,
        handle: DispatcherHandle,
        attempt: Callable[[float], bool],
        tick: Callable[[float], None],
        has_time: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._handle = handle
        self._attempt = attempt
        self._tick = tick
        self._has_time = has_time
        self._clock = clock
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Look for work: a pod has come, or an event, a result or the leadership may help one."""
        self._changed.set()

    async def run(self, *ready: asyncio.Event) -> None:
        """Try pods until cancelled, the first one after all events in `ready` are set."""
        for event in ready:
            await event.wait()
        second = math.floor(self._clock())
        while True:
            self._changed.clear()
            now = self._clock()
            if math.floor(now) > second:
                second = math.floor(now)
                self._tick(float(second))
            if self._slice():
                await asyncio.sleep(0)
                continue
            limit = second + 1 - self._clock() if self._has_time() else None
            try:
                async with asyncio.timeout(None if limit is None else max(0.0, limit)):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _slice(self) -> bool:
        """Try some pods; whether there may be more."""
        for _ in range(max(1, SLICE // max(1, len(self._model.nodes)))):
            if not self._handle.deciding or not self._handle.credits or not self._attempt(self._clock()):
                return False
        return True
