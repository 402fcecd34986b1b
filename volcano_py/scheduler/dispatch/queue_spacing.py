"""At which rate the statuses of queues are sent. Volcano writes them in each cycle.

What a queue holds changes with each pod. The first change is sent at once; while a pause lasts, the newest status of
the queue is kept here. Otherwise each pod would cost two more operations on their way to the dispatcher and back, which
writes none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from volcano_py.scheduler.model.plan import Operation, QueueStatus

QUEUE_SPACING = 5.0
"""Seconds between two statuses of one queue."""


class QueueSpacing:
    """`emit(operations)` sends what was kept when its pause is over; `later(seconds, call, name)` calls it then."""

    def __init__(
        self,
        emit: Callable[[list[Operation]], None],
        later: Callable[[float, Callable[[str], None], str], asyncio.TimerHandle] | None = None,
    ) -> None:
        self._emit = emit
        self._later = later
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._kept: dict[str, QueueStatus] = {}

    def passing(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """Those that are sent now."""
        for op in operations:
            if isinstance(op, QueueStatus):
                return [op for op in operations if not isinstance(op, QueueStatus) or self._begins(op)]
        return operations

    def close(self) -> None:
        """Cancel the timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _begins(self, op: QueueStatus) -> bool:
        """Whether a status is sent now, and begins a pause."""
        if op.name in self._timers:
            self._kept[op.name] = op
            return False
        later = self._later or asyncio.get_running_loop().call_later
        self._timers[op.name] = later(QUEUE_SPACING, self._due, op.name)
        return True

    def _due(self, name: str) -> None:
        del self._timers[name]
        op = self._kept.pop(name, None)
        if op is not None:
            self._begins(op)
            self._emit([op])
