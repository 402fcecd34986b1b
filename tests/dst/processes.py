"""Simulated processes: what a kill ends, what a stop holds, and the clock that a process reads."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

from tests.dst.loop import SimulatedLoop
from tests.dst.virtual import PROCESS


class Clock:
    """The clock of a machine: its rate differs a little from the true one, and its wall clock may jump."""

    def __init__(self) -> None:
        self.rate = 1.0
        self.jumped = 0.0

        self._since = 0.0
        self._shown = 0.0

    def monotonic(self, now: float) -> float:
        return self._shown + (now - self._since) * self.rate

    def wall(self, now: float) -> float:
        return self.monotonic(now) + self.jumped

    def drift(self, now: float, rate: float) -> None:
        """Go on at another rate."""
        self._shown, self._since = self.monotonic(now), now
        self.rate = rate


class Process:
    """A process of one replica. `alive` is False from the moment of a kill: nothing leaves it then."""

    def __init__(self, loop: SimulatedLoop, name: str, component: str, clock: Clock) -> None:
        self.loop = loop
        self.name = name
        self.component = component
        self.clock = clock
        self.alive = True
        self.stopped = False
        self.cut_off = False
        """Whether its network is lost."""
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.on_error: Callable[[Any, dict[str, Any]], None] | None = None
        self.closes: list[Callable[[], None]] = []
        """What the kernel closes when the process ends."""
        self.children: list[Process] = []
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)

    def start(self, coroutine: Coroutine[Any, Any, Any], name: str = "main") -> asyncio.Task[Any]:
        """Run a coroutine as a part of this process."""
        task: asyncio.Task[Any] = self.context.run(
            lambda: self.loop.create_task(coroutine, name=f"{self.name}: {name}", context=self.context.copy())
        )
        return task

    def ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)
        if not task.cancelled():
            task.exception()  # raised where the task is awaited; without this line asyncio reports it as well

    def kill(self) -> None:
        """End at once: no request leaves the process any more, and no code of it goes on."""
        if not self.alive:
            return
        self.alive = False
        if self.stopped:
            self.go_on()
        for close in self.closes:
            close()
        for task in list(self.tasks):
            task.cancel()

    def stop(self) -> None:
        """SIGSTOP: its code does not run, and its connections stay open."""
        self.stopped = True

    def go_on(self) -> None:
        """SIGCONT."""
        self.stopped = False
        self.loop.release(self)
