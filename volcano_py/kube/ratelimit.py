"""A token bucket: `--kube-api-qps` and `--kube-api-burst`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class TokenBucket:
    """Allows `burst` calls at once and `qps` per second on average; `qps <= 0` means no limit."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._qps = qps
        self._burst = max(1.0, float(burst))
        self._tokens = self._burst
        self._clock = clock
        self._stamp = clock()

    def reserve(self) -> float:
        """Take one token, possibly a future one; returns the seconds until it is available (0 if it is)."""
        if self._qps <= 0:
            return 0.0
        self._fill()
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0 else -self._tokens / self._qps

    def try_take(self) -> bool:
        """Take a token if one is available."""
        self._fill()
        if self._qps > 0 and self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def acquire(self) -> None:
        """Wait for a token; callers are served in order."""
        wait = self.reserve()
        if wait > 0:
            await asyncio.sleep(wait)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._stamp) * self._qps)
        self._stamp = now
