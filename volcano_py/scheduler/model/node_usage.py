"""How busy a node really is, as a metrics source measures it. Volcano: NodeUsage."""

from __future__ import annotations

from typing import NamedTuple

PERIOD = "10m"
"""Over which time averages are taken."""
STALE = 300.0
"""Seconds after which a measurement counts no more."""


class NodeUsage(NamedTuple):
    """The average use of cpu and memory in percent. `time`: when it was measured, seconds since the epoch."""

    time: float
    cpu: float
    memory: float

    def is_fresh(self, now: float) -> bool:
        return self.time > 0 and now - self.time <= STALE
