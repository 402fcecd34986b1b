"""Counters in a job's status: written a second after they moved, unless something else takes them along.

The pods of a gang start and end within moments of each other, and each of them moves the counters; then the phase
changes. Nothing is decided by what is stored (every reconcile counts again), so a write of counters alone can wait.
"""

from __future__ import annotations

from typing import Any

import msgspec

from volcano_py.api.batch import Job
from volcano_py.api.kinds import JOB
from volcano_py.controllers.instructions import Instruction, UpdateStatus

SECONDS = 1.0
_COUNTERS = ("taskStatusCount", "pending", "running", "succeeded", "failed", "terminating", "unknown")


def only_counters(job: Job, instruction: Instruction) -> bool:
    """Whether a write of the job's status changes nothing but counters."""
    if not isinstance(instruction, UpdateStatus) or instruction.rt != JOB:
        return False
    return _rest(msgspec.to_builtins(job.status)) == _rest(instruction.status)


def _rest(status: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if key not in _COUNTERS}


class Held:
    """Per job: since when a write of counters waits (seconds, on the caller's clock)."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def wait(self, key: str, now: float) -> float:
        """Seconds that a write of counters still has to wait; 0: it is due."""
        since = self._since.setdefault(key, now)
        return max(0.0, since + SECONDS - now) if since <= now else 0.0

    def drop(self, key: str) -> None:
        """They were written with something else, or the job is gone."""
        self._since.pop(key, None)
