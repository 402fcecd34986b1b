"""An event loop with virtual time: nothing waits, and the seed decides which process runs first.

Within a process callbacks run in the order in which they were scheduled, as in asyncio. Those of different processes
that are ready at the same moment are interleaved at random. There are no sockets, threads or signals.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from tests.dst.virtual import PROCESS, STATE

MOST_AT_ONCE = 200_000
"""Callbacks without any progress of the time: more are a loop that never waits."""


class Endless(Exception):
    """The system runs without waiting."""


class SimulatedTask(asyncio.Task[Any]):
    """A task whose hash does not depend on its address: sets of tasks have the same order in each run."""

    serial: int

    def __hash__(self) -> int:
        return self.serial


class SimulatedFuture(asyncio.Future[Any]):
    """A future with such a hash."""

    serial: int

    def __hash__(self) -> int:
        return self.serial


class SimulatedLoop(asyncio.BaseEventLoop):
    """One seeded event loop. `now` is the virtual time in seconds."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.now = 0.0
        self.callbacks = 0
        self._serial = 0
        self._order = random.Random(f"order of {seed}")
        self._at_once = 0
        self.held: dict[Any, deque[Any]] = {}
        """Callbacks of stopped processes."""
        self.on_error: Callable[[dict[str, Any]], None] = lambda context: None
        self.set_task_factory(self._make_task)

    # ---- time and order ------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        ready: deque[Any] = self._ready  # type: ignore[attr-defined]
        timers: list[Any] = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)._scheduled = False
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not timers:
                raise Endless("nothing is left that could run")
            if timers[0]._when > self.now:
                self.now = timers[0]._when
                self._at_once = 0
        while timers and timers[0]._when <= self.now:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        count = len(ready)
        self._at_once += count
        self.callbacks += count
        if self._at_once > MOST_AT_ONCE:
            raise Endless(f"{self._at_once} callbacks at the same moment, the last one of {ready[-1]}")
        for handle in self._interleaved([ready.popleft() for _ in range(count)]):
            if not handle._cancelled:
                process = handle._context.get(PROCESS)
                if process is not None and process.stopped:
                    self.held.setdefault(process, deque()).append(handle)
                else:
                    handle._run()
        self._timer_cancelled_count = 0

    def _interleaved(self, handles: list[Any]) -> list[Any]:
        """In the order of each process, and in a random order of processes."""
        if len(handles) < 2:
            return handles
        lanes: dict[Any, deque[Any]] = {}
        for handle in handles:
            lanes.setdefault(handle._context.get(PROCESS), deque()).append(handle)
        if len(lanes) == 1:
            return handles
        waiting, merged = list(lanes.values()), []
        while waiting:
            lane = waiting[self._order.randrange(len(waiting))]
            merged.append(lane.popleft())
            if not lane:
                waiting.remove(lane)
        return merged

    def release(self, process: Any) -> None:
        """Run what was held while a process was stopped."""
        for handle in self.held.pop(process, ()):
            self._ready.append(handle)  # type: ignore[attr-defined]

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, event_list: Any) -> None:
        pass

    # ---- tasks ---------------------------------------------------------------------------------------------

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
        **_: Any,
    ) -> SimulatedTask:
        # The hash is needed before the task is complete: asyncio registers it in a set.
        task = SimulatedTask.__new__(SimulatedTask)
        task.serial = self.next_serial()
        process = PROCESS.get() if context is None else context.get(PROCESS)
        task.__init__(coroutine, loop=loop, name=name or f"task {task.serial}", context=context)  # type: ignore[misc]
        if process is not None:
            process.tasks[task] = None
            task.add_done_callback(process.ended)
        return task

    def create_future(self) -> SimulatedFuture:
        future = SimulatedFuture.__new__(SimulatedFuture)
        future.serial = self.next_serial()
        future.__init__(loop=self)  # type: ignore[misc]
        return future

    # ---- what a real loop has ------------------------------------------------------------------------------

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Threads are calls."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:
        pass

    def set_exception_handler(self, handler: Any) -> None:
        process = PROCESS.get()
        if process is not None:
            process.on_error = handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.on_error(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        handle = context.get("handle")
        process = handle._context.get(PROCESS) if handle is not None else PROCESS.get()
        if process is not None and process.on_error is not None:
            process.on_error(self, context)
        else:
            self.on_error(context)


def current() -> SimulatedLoop:
    """The loop of the running simulation."""
    assert STATE.loop is not None
    return STATE.loop
