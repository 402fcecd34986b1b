"""Exponential back-off after failures, with jitter so that clients do not retry simultaneously."""

from __future__ import annotations

import random


class Backoff:
    """`next()` returns the seconds to wait: `first`, then doubling up to `longest`, each times 0.5 to 1.5."""

    def __init__(self, first: float = 0.2, longest: float = 10.0) -> None:
        self._first = first
        self._longest = longest
        self.failures = 0
        """Number of failures since the last success."""

    def next(self) -> float:
        """The delay after one more failure, in seconds."""
        base: float = min(self._longest, self._first * 2 ** min(self.failures, 30))
        self.failures += 1
        return base * random.uniform(0.5, 1.5)

    def reset(self) -> None:
        """The attempt succeeded: continue with `first`."""
        self.failures = 0
