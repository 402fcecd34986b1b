"""The work queue of a controller: each key is queued at most once, and never processed by two workers at a time.

As client-go's rate limiting queue: a key that is added while it is processed is queued again when it is done; retries
wait 5 ms, 10 ms, ... per key, and all of them share a bucket of 10 per second (burst 100). Retries after a
conflict have their own back-off.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from volcano_py.kube.ratelimit import TokenBucket

K = TypeVar("K", bound=Hashable)

FIRST_CONFLICT, LONGEST_CONFLICT = 0.02, 10.0
"""Seconds before a retry after a conflict: the watch usually delivers the newer version within the first ones."""

LONGEST_RETRY = 60.0
"""Seconds between two retries, at most: what ends is noticed within a minute. client-go: 1,000."""


class ShutDown(Exception):
    """Raised by `get` when the queue was shut down and is empty."""


class WorkQueue(Generic[K]):
    """De-duplicating and rate limited; for one event loop."""

    def __init__(
        self,
        *,
        first_retry: float = 0.005,
        longest_retry: float = LONGEST_RETRY,
        qps: float = 10.0,
        burst: int = 100,
    ) -> None:
        self._first_retry = first_retry
        self._longest_retry = longest_retry
        self._bucket = TokenBucket(qps, burst)
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._conflicts: dict[K, int] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._shutting_down = False

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Queue `key` for processing; no effect if it is already queued."""
        if self._shutting_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """`add` after a delay; of several delays for a key the earliest counts."""
        if self._shutting_down:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        waiting = self._timers.get(key)
        if waiting is not None:
            if waiting.when() <= loop.time() + seconds:
                return
            waiting.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def add_rate_limited(self, key: K) -> None:
        """`add` after the back-off of this key: call it after a failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = min(self._longest_retry, self._first_retry * 2 ** min(failures, 60))
        self.add_after(key, max(own, self._bucket.reserve()))

    def add_after_conflict(self, key: K) -> None:
        """`add` soon, and later each time: a server may respond with a conflict although no version is newer.

        Conflicts are no `retries`.
        """
        conflicts = self._conflicts.get(key, 0)
        self._conflicts[key] = conflicts + 1
        self.add_after(key, min(LONGEST_CONFLICT, FIRST_CONFLICT * 2 ** min(conflicts, 60)))

    def forget(self, key: K) -> None:
        """Reset the back-off of a key: processing succeeded, or was abandoned."""
        self._failures.pop(key, None)
        self._conflicts.pop(key, None)

    def retries(self, key: K) -> int:
        """The number of `add_rate_limited` calls for the key since `forget`."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key; call `done` with it afterwards. Raises ShutDown."""
        while not self._ready:
            if self._shutting_down:
                raise ShutDown
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # A worker that is cancelled right after it was woken passes the call on.
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        if self._ready:
            self._wake()
        return key

    def done(self, key: K) -> None:
        """Processing of the key has ended; if it was added in the meantime, it is queued again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)
            self._wake()

    def shut_down(self) -> None:
        """Accept no more keys; `get` returns the queued ones and then raises ShutDown."""
        self._shutting_down = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
