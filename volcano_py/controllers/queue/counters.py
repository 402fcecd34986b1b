"""Counters in a queue's status: PodGroups by phase. Not in Volcano, where no component writes them.

Each change of a PodGroup's phase changes a counter. A change of counters alone is written some seconds after the last
write of the queue's status; the more queues, the less often, so that all queues together cost few requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano_py.api.scheduling import PENDING, PodGroup

PHASES: Final = ("pending", "inqueue", "running", "unknown", "completed")
"""The fields of the status."""
SECONDS = 5.0
"""The least time between two writes of one queue."""
WRITES_A_SECOND = 10.0
"""The most writes of all queues together, on average."""


def count(podgroups: Iterable[PodGroup]) -> dict[str, int]:
    """The counters of these PodGroups."""
    counters = dict.fromkeys(PHASES, 0)
    for podgroup in podgroups:
        phase = (podgroup.status.phase or PENDING).lower()
        if phase in counters:
            counters[phase] += 1
    return counters


class Pace:
    """When each queue's counters were written last (seconds, on the caller's clock)."""

    def __init__(self) -> None:
        self._written: dict[str, float] = {}

    def wait(self, name: str, queues: int, now: float) -> float:
        """Seconds until the counters may be written; 0: now."""
        pause = max(SECONDS, queues / WRITES_A_SECOND)
        return max(0.0, self._written.get(name, now - pause) + pause - now)

    def wrote(self, name: str, now: float) -> None:
        """The status was written."""
        self._written[name] = now

    def drop(self, name: str) -> None:
        """The queue was deleted."""
        self._written.pop(name, None)
