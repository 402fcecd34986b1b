"""The checks of /healthz. kube-apiserver and Volcano: `healthz.HealthzChecker`.

A check returns the reason of its failure, or an empty string. A check must only fail if a restart of the process can
correct it: for a task that has ended or hangs, but not for an unreachable API server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

Check = Callable[[], str]


class Health:
    """The checks of one process, in the order of their addition."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check, or replace the check with this name."""
        self._checks[name] = check

    def add_task(self, name: str, task: asyncio.Task[Any]) -> None:
        """Add a task that must run as long as the process."""
        self.add(name, lambda: "the task has ended" if task.done() else "")

    async def watched(self, name: str, part: Coroutine[Any, Any, None], check: Check = lambda: "") -> None:
        """Run a task of the process with its own check, which also fails after the task has ended."""
        self.add(name, check)
        try:
            await part
        finally:
            self.add(name, lambda: "the task has ended")

    def results(self) -> dict[str, str]:
        """Every check with the reason of its failure; empty if it passes."""
        found = {}
        for name, check in self._checks.items():
            try:
                found[name] = check()
            except Exception as error:
                found[name] = f"the check itself failed: {error!r}"
        return found

    def answer(self, verbose: bool = False) -> tuple[bool, str]:
        """Whether all checks pass, and the text to serve: `ok`, or one line per check."""
        results = self.results()
        healthy = not any(results.values())
        if healthy and not verbose:
            return True, "ok"
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in results.items()]
        return healthy, "\n".join([*lines, f"healthz check {'passed' if healthy else 'failed'}", ""])


class Progress:
    """Whether a loop makes progress while it has work.

    The loop calls `idle` before it waits for work and `working` when it continues; code that adds work calls `due`.
    `limit` is in seconds; time while the machine is suspended does not count.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._since: float | None = None

    def working(self) -> None:
        """The loop continues; it must call this or `idle` again within the limit."""
        self._since = self._clock()

    def idle(self, seconds: float | None = None) -> None:
        """The loop waits for `due`, for at most `seconds` if given."""
        self._since = None if seconds is None else self._clock() + seconds

    def due(self) -> None:
        """There is work for the loop."""
        now = self._clock()
        if self._since is None or self._since > now:
            self._since = now

    def check(self) -> str:
        """The check for `Health.add`."""
        late = 0.0 if self._since is None else self._clock() - self._since
        return f"no progress for {late:.0f} s" if late > self._limit else ""
