"""How long a job waits before it is restarted again after an eviction.

Such restarts are none of the job's `maxRetry`; without a limit of their own a job that others keep evicting would be
restarted without end. The first comes at once, each further one after twice the time; a job that was left in peace for
long enough starts from zero.
"""

from __future__ import annotations

FIRST = 1.0
LONGEST = 300.0
PEACE = 600.0
"""Seconds without an eviction after which it is forgotten."""


class EvictionBackoff:
    """Per job: how often it was restarted after an eviction, and when last (seconds, on the caller's clock)."""

    def __init__(self) -> None:
        self._restarts: dict[str, tuple[int, float]] = {}

    def delay(self, key: str, now: float) -> float:
        """Seconds to wait from now."""
        count, last = self._restarts.get(key, (0, 0.0))
        if count == 0 or now - last > PEACE:
            return 0.0
        return max(0.0, last + min(FIRST * 2.0 ** (count - 1), LONGEST) - now)

    def restarted(self, key: str, now: float) -> None:
        """Note a restart."""
        count, last = self._restarts.get(key, (0, now))
        self._restarts[key] = (1 if now - last > PEACE else count + 1, now)

    def drop(self, key: str) -> None:
        """The job is gone."""
        self._restarts.pop(key, None)
