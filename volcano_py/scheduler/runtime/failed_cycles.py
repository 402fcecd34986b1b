"""Cycles that fail in succession: a loop that only raises makes progress, but schedules nothing. Volcano: no part."""

from __future__ import annotations

MAX_FAILED_CYCLES = 5
"""Cycles that fail in succession before /healthz does: one that fails without a change of its input fails again."""


class FailedCycles:
    """The cycles that have failed since the last one that ended."""

    def __init__(self) -> None:
        self.count = 0
        self._why = ""

    def ended(self) -> None:
        """A cycle has ended without an exception."""
        self.count = 0

    def failed(self, error: BaseException) -> bool:
        """A cycle has raised `error`; whether its reason is another one than the last."""
        why = f"{type(error).__name__}: {error}"[:500]
        new = why != self._why or self.count == 0
        self.count += 1
        self._why = why
        return new

    def check(self) -> str:
        """The check for `Health.add`."""
        if self.count < MAX_FAILED_CYCLES:
            return ""
        return f"the last {self.count} cycles failed and nothing is scheduled; the last reason: {self._why}"
