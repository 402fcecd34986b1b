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
from contextvars import Context, copy_context
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


class Callback:
    """What `call_soon` and `call_at` return, as `asyncio.Handle` and `TimerHandle`, with less to do in each."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when", "process")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None, when: float = 0.0
    ) -> None:
        self._context = copy_context() if context is None else context
        self._callback: Callable[..., object] | None = callback
        self._args: tuple[Any, ...] = args
        self._cancelled = False
        self._when = when
        self.process = self._context.get(PROCESS)
        """The simulated process whose code it is."""

    def __repr__(self) -> str:
        return f"<{self._callback!r}{self._args!r}>"

    def __hash__(self) -> int:
        return hash(self._when)

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._callback, self._args = None, ()

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when


class SimulatedLoop(asyncio.BaseEventLoop):
    """One seeded event loop. `now` is the virtual time in seconds."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.now = 0.0
        self.callbacks = 0
        self._serial = 0
        self._order = random.Random(f"order of {seed}")
        self._at_once = 0
        self._soon: list[Callback] = []
        self._timers: list[tuple[float, int, Callback]] = []
        """A heap: timers of the same moment run in the order in which they were set."""
        self._set = 0
        self._compact_at = 1000
        """The number of timers at which those that were cancelled are removed."""
        self.held: dict[Any, deque[Callback]] = {}
        """Callbacks of stopped processes."""
        self.on_error: Callable[[dict[str, Any]], None] = lambda context: None
        self.set_task_factory(self._make_task)

    # ---- time and order ------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        made = Callback(callback, args, context)
        self._soon.append(made)
        return made

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        made = Callback(callback, args, context, when)
        self._set += 1
        heapq.heappush(self._timers, (when, self._set, made))
        if len(self._timers) > self._compact_at:
            self._timers = [timer for timer in self._timers if not timer[2]._cancelled]
            heapq.heapify(self._timers)
            self._compact_at = 2 * len(self._timers) + 1000
        return made

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        timers, ready = self._timers, self._soon
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not timers:
                raise Endless("nothing is left that could run")
            if timers[0][0] > self.now:
                self.now = timers[0][0]
                self._at_once = 0
        while timers and timers[0][0] <= self.now:
            timer = heapq.heappop(timers)[2]
            if not timer._cancelled:
                ready.append(timer)
        self._soon = []
        self._at_once += len(ready)
        self.callbacks += len(ready)
        if self._at_once > MOST_AT_ONCE:
            raise Endless(f"{self._at_once} callbacks at the same moment, the last one of {ready[-1]}")
        for handle in self._interleaved(ready):
            if handle._cancelled:
                continue
            if handle.process is not None and handle.process.stopped:
                self.held.setdefault(handle.process, deque()).append(handle)
            else:
                self._run(handle)

    def _run(self, handle: Callback) -> None:
        try:
            handle._context.run(handle._callback, *handle._args)  # type: ignore[arg-type]
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            text = f"Exception in callback {handle!r}"
            self.call_exception_handler({"message": text, "exception": error, "handle": handle})

    def _interleaved(self, handles: list[Callback]) -> list[Callback]:
        """In the order of each process, and in a random order of processes."""
        if len(handles) < 2:
            return handles
        lanes: dict[Any, deque[Callback]] = {}
        for handle in handles:
            lanes.setdefault(handle.process, deque()).append(handle)
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
            self._soon.append(handle)

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
        process = handle.process if handle is not None else PROCESS.get()
        if process is not None and process.on_error is not None:
            process.on_error(self, context)
        else:
            self.on_error(context)


def current() -> SimulatedLoop:
    """The loop of the running simulation."""
    assert STATE.loop is not None
    return STATE.loop
