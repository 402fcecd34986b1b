"""The measured usage of a node, from a metrics source. Volcano: NodeUsage."""

from __future__ import annotations

from typing import NamedTuple

PERIOD = "10m"
"""The period over which averages are computed."""
STALE = 300.0
"""Seconds after which a measurement is no longer used."""


class NodeUsage(NamedTuple):
    """The average use of cpu and memory in percent. `time`: the time of the measurement, seconds since the epoch."""

    time: float
    cpu: float
    memory: float

    def is_fresh(self, now: float) -> bool:
        return self.time > 0 and now - self.time <= STALE
