"""Watchdog: ends a cycle in which a call of a plugin, or the whole cycle, lasts too long. Not in Volcano, where a
plugin that does not return stops the scheduler until it is restarted by hand.

A cycle runs in the thread of the event loop and does not yield. A timer sends SIGALRM ten times a second while it runs;
the handler finds the plugin whose call is in progress in the stack, and raises CycleStuck in the middle of it when a
limit is exceeded. The decision core has no clock and no part in this. CycleStuck is no Exception, so that no plugin
contains it.

Python runs the handler between two instructions, and regular expressions do now and then. A call of compiled code that
does not return is not interrupted: its stack is written to stderr, and the dispatcher ends the process when there is no
heartbeat. Time in which the process is suspended does not count.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from volcano_py.scheduler.framework.session import Session

log = logging.getLogger(__name__)

TICK = 0.1
"""Seconds between two looks at the stack."""
UNWIND = 5.0
"""Seconds after which a cycle that was ended, and that still runs, is ended again."""
LONGEST_STEP = 5 * TICK
"""What one look may count, in seconds: more means that the process was suspended."""
BUILT_IN = "volcano_py.scheduler.plugins."


class CycleStuck(BaseException):
    """Raised in a cycle that has exceeded a limit. `plugin`: whose call it is, or empty; `stack`: where it was;
    `points`: all extension points of the plugin, if the session was open."""

    def __init__(self, text: str, plugin: str, stack: str, points: Collection[str] = ()) -> None:
        super().__init__(text)
        self.plugin = plugin
        self.stack = stack
        self.points = points


class Watchdog:
    """`modules`: the plugin of each module with one that is not built in. Limits in seconds; 0: none."""

    def __init__(
        self,
        cycle_limit: float,
        call_limit: float,
        modules: Callable[[], dict[str, str]],
        clock: Callable[[], float] = time.monotonic,
        what: str = "a cycle",
    ) -> None:
        self.what = what
        self.seconds: dict[str, float] = {}
        """The time of each plugin in the last cycle, as far as it was seen."""
        self._cycle_limit = cycle_limit
        self._call_limit = call_limit
        self._modules = modules
        self._clock = clock
        self._running = False
        self._shields = 0
        self._last = self._spent = self._call = self._quiet_until = 0.0
        self._frame: FrameType | None = None
        self._of: dict[str, str] = {}
        self._dumps = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch a cycle. Raises CycleStuck. Without effect outside of the main thread, where no signal arrives."""
        limited = self._cycle_limit > 0 or self._call_limit > 0
        if not limited or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._begin()
        before = signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        try:
            yield
        finally:
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            self._frame = None
            if self._dumps:
                faulthandler.cancel_dump_traceback_later()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Do not end the cycle within this context: what it changes must be complete."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1

    def _begin(self) -> None:
        self.seconds = defaultdict(float)
        self._of = self._modules()
        self._running, self._dumps = True, False
        self._shields = 0
        self._last, self._spent, self._call = self._clock(), 0.0, 0.0
        self._quiet_until = self._last

    def _tick(self, number: int, frame: FrameType | None) -> Any:
        if not self._running:
            return
        now = self._clock()
        step = min(max(0.0, now - self._last), LONGEST_STEP)
        self._last = now
        self._spent += step
        plugin, called = self.caller(frame)
        if called is not None and called is self._frame:
            self._call += step
        else:
            self._frame, self._call = called, step
        if plugin:
            self.seconds[plugin] += step
        if self._cycle_limit and not self._dumps and self._spent > self._cycle_limit / 2:
            # A thread of its own, which needs no Python: for compiled code that does not return.
            self._dumps = True
            faulthandler.dump_traceback_later(self._cycle_limit)
        if self._shields or now < self._quiet_until:
            return
        if plugin and self._call_limit and self._call > self._call_limit:
            self._end(f"a call of plugin {plugin} has lasted {self._call:.0f} s", plugin, frame)
        if self._cycle_limit and self._spent > self._cycle_limit:
            of = f", {self.seconds[plugin]:.0f} s of it in plugin {plugin}" if plugin else ""
            self._end(f"{self.what} has lasted {self._spent:.0f} s{of}", plugin, frame)

    def _end(self, text: str, plugin: str, frame: FrameType | None) -> None:
        # The cycle has time to unwind; a plugin that contains even this, or a destructor, gets it again.
        self._quiet_until = self._clock() + UNWIND
        stack = "".join(traceback.format_stack(frame)[-40:])
        raise CycleStuck(text, plugin, stack, _points(plugin, frame))

    def caller(self, frame: FrameType | None) -> tuple[str, FrameType | None]:
        """The outermost call of a plugin in a stack: its name and its frame; empty and None without one."""
        name, found = "", None
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith(BUILT_IN):
                name, found = module.removeprefix(BUILT_IN).partition(".")[0].replace("_", "-"), frame
            elif module in self._of:
                name, found = self._of[module], frame
            frame = frame.f_back
        return name, found


def _points(plugin: str, frame: FrameType | None) -> list[str]:
    """The extension points of a plugin, from the session that the stack contains."""
    while frame is not None:
        session = frame.f_locals.get("session")
        if frame.f_code.co_name == "run_once" and isinstance(session, Session):
            complete = hasattr(session, "placement")
            return [point for point, _, _ in session.callbacks.registered_by(plugin)] if complete else []
        frame = frame.f_back
    return []
