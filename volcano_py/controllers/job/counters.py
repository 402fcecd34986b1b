"""Counters in a Job's status: written a second after a change, unless another write of the status includes them.

The pods of a gang start and end within a short time, and each of them changes the counters; then the phase changes.
No decision uses the stored counters (every reconcile counts again), so a write of counters alone can be delayed.
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
    """Whether a write of the Job's status changes only counters."""
    if not isinstance(instruction, UpdateStatus) or instruction.rt != JOB:
        return False
    return _rest(msgspec.to_builtins(job.status)) == _rest(instruction.status)


def _rest(status: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if key not in _COUNTERS}


class Held:
    """Per Job: the time since which a write of counters is delayed (seconds, on the caller's clock)."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def wait(self, key: str, now: float) -> float:
        """Seconds until a delayed write of counters is due; 0: it is due."""
        since = self._since.setdefault(key, now)
        return max(0.0, since + SECONDS - now) if since <= now else 0.0

    def drop(self, key: str) -> None:
        """The counters were written, or the Job was deleted."""
        self._since.pop(key, None)
