"""How results of operations change the cache. Volcano: the error paths of the cache's Bind and Evict.

The model assumed every operation when it was emitted. `done` changes nothing: the assumption holds until the watch
returns the object. An operation that was certainly not written is forgotten; after a rejection or a conflict not at
once, see `status_backoff`. If the outcome is unknown, `Resync` reads the pod.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from volcano_py.scheduler.cache.resync import Assumptions, Resync
from volcano_py.scheduler.cache.status_backoff import FIRST_PAUSE, KINDS, MAX_PAUSE, StatusBackoff
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.plan import Bind, Evict, Operation, RemoveGate

MAX_TIMERS = 1_000
"""Number of timers from which expired ones are dropped."""


class ResultHandler:
    """Forgets operations that failed, at once or after a back-off."""

    def __init__(
        self, cache: Assumptions, resync: Resync, statuses: StatusBackoff, first_pause: float = FIRST_PAUSE
    ) -> None:
        self._cache = cache
        self._statuses = statuses
        self._resync = resync
        self._first_pause = first_pause
        self._failures: dict[str, int] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._resting: Counter[str] = Counter()
        """The number of operations of each pod, by UID, that are forgotten when a back-off ends."""

    def handle(self, op: Operation, result: Result) -> None:
        """Apply the result of one operation."""
        if type(op) in KINDS and result.outcome in ("conflict", "failed"):
            self._statuses.rejected(op, conflict=result.outcome == "conflict")
            return
        if result.outcome == "done":
            self._statuses.succeeded(op)
        if result.outcome in ("done", "superseded"):
            if self._failures and isinstance(op, Bind | Evict | RemoveGate):
                self._failures.pop(op.uid, None)
            return
        if result.outcome == "unknown" and isinstance(op, Bind | Evict):
            self._resync.add(op)
            return
        if result.outcome == "failed" and isinstance(op, Bind | Evict | RemoveGate):
            # The API server would reject the same operation again: without a back-off, a pod that cannot be written
            # would keep the scheduler and the API server busy.
            failures = self._failures[op.uid] = self._failures.get(op.uid, 0) + 1
            pause = min(MAX_PAUSE, self._first_pause * 2 ** (failures - 1))
            self._timers.add(asyncio.get_running_loop().call_later(pause, self._rested, op))
            self._resting[op.uid] += 1
            return
        self._forget(op)

    def waits(self, uid: str) -> bool:
        """Whether an operation of a pod is forgotten later."""
        return uid in self._resting

    def pod_deleted(self, uid: str) -> None:
        """Drop the back-off of a deleted pod."""
        self._failures.pop(uid, None)

    def close(self) -> None:
        """Cancel the timers."""
        for timer in self._timers:
            timer.cancel()

    def _rested(self, op: Bind | Evict | RemoveGate) -> None:
        self._resting[op.uid] -= 1
        if not self._resting[op.uid]:
            del self._resting[op.uid]
        self._forget(op)

    def _forget(self, op: Operation) -> None:
        self._cache.forget(op)
        self._cache.changed()
        if len(self._timers) > MAX_TIMERS:
            now = asyncio.get_running_loop().time()
            self._timers = {timer for timer in self._timers if timer.when() >= now}
