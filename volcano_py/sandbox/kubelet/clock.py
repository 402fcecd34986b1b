"""Simulated time for the run times of hollow containers. A ConfigMap sets its speed, so that any client can change it.

With `data.speed: "60"` in `kube-system/sandbox-clock` a minute passes in a second. Only run times and back-offs depend
on it; timestamps, Leases and everything outside the kubelets use the wall clock.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from volcano_py.sandbox.apiserver.storage.store import DELETED, Collection, Entry, Event

LOG = logging.getLogger(__name__)

NAMESPACE, NAME, KEY = "kube-system", "sandbox-clock", "speed"
FASTEST = 1_000_000.0


class Timer:
    """A call that is due at a simulated time."""

    __slots__ = ("call", "cancelled")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Seconds that pass `speed` times as fast as those of the event loop; all timers share one timer of the loop."""

    def __init__(self) -> None:
        self.speed = 1.0
        self._since: tuple[float, float] | None = None  # loop time and simulated time at the last change of speed
        self._due: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._handle: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """Simulated seconds since the first call."""
        real = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = (real, 0.0)
        return self._since[1] + (real - self._since[0]) * self.speed

    def call_later(self, seconds: float, function: Callable[..., Any], *arguments: Any) -> Timer:
        """Call a function after a number of simulated seconds."""
        timer = Timer(lambda: function(*arguments))
        due = self.now() + max(seconds, 0.0)
        first = not self._due or due < self._due[0][0]
        heappush(self._due, (due, next(self._numbers), timer))
        if first:
            self._arm()
        return timer

    def set_speed(self, speed: float) -> None:
        """Set the speed from now on; pending calls run earlier or later accordingly."""
        self._since = (asyncio.get_running_loop().time(), self.now())
        self.speed = speed
        self._arm()

    def stop(self) -> None:
        """Cancel all calls."""
        self._due.clear()
        self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._due:
            wait = (self._due[0][0] - self.now()) / self.speed
            self._handle = asyncio.get_running_loop().call_later(max(wait, 0.0), self._ring)

    def _ring(self) -> None:
        self._handle = None
        now = self.now() + 1e-6 * self.speed  # the resolution of the loop's own timers
        while self._due and self._due[0][0] <= now:
            timer = heappop(self._due)[2]
            if not timer.cancelled:
                timer.call()
        if self._handle is None:
            self._arm()


def parse_speed(text: str) -> float:
    """Parse a speed; ValueError with the remedy if it is invalid."""
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed <= FASTEST or math.isnan(speed):
        raise ValueError(f"speed {text!r} is not a number above 0 and up to {FASTEST:.0f}; 1 is the wall clock's")
    return speed


def follow(clock: Clock, configmaps: Collection) -> None:
    """Set the clock's speed from the ConfigMap, now and whenever it changes."""

    def apply(entry: Entry | None) -> None:
        text = "1" if entry is None else str((entry.load().get("data") or {}).get(KEY, "1"))
        try:
            clock.set_speed(parse_speed(text))
        except ValueError as error:
            LOG.warning("ConfigMap %s/%s: %s; the clock stays as it is", NAMESPACE, NAME, error)

    def observe(event: Event) -> None:
        if event.entry.name == NAME and event.entry.namespace == NAMESPACE:
            apply(None if event.type == DELETED else event.entry)

    apply(configmaps.get(NAMESPACE, NAME))
    configmaps.observers.append(observe)
