"""The delay of a Job's restarts after evictions.

Such restarts do not count against `maxRetry`; without a limit, a Job that is evicted repeatedly would be restarted
endlessly. The first restart is immediate, each further one waits twice as long; after a period without evictions
the delay is reset.
"""

from __future__ import annotations

FIRST = 1.0
LONGEST = 300.0
PEACE = 600.0
"""Seconds without an eviction after which the delay is reset."""


class EvictionBackoff:
    """Per Job: the number of restarts after evictions, and the last one (seconds, on the caller's clock)."""

    def __init__(self) -> None:
        self._restarts: dict[str, tuple[int, float]] = {}

    def delay(self, key: str, now: float) -> float:
        """Seconds to wait from now."""
        count, last = self._restarts.get(key, (0, 0.0))
        if count == 0 or now - last > PEACE:
            return 0.0
        return max(0.0, last + min(FIRST * 2.0 ** (count - 1), LONGEST) - now)

    def restarted(self, key: str, now: float) -> None:
        """Record a restart."""
        count, last = self._restarts.get(key, (0, now))
        self._restarts[key] = (1 if now - last > PEACE else count + 1, now)

    def drop(self, key: str) -> None:
        """The Job was deleted."""
        self._restarts.pop(key, None)
