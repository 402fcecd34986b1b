"""The decider's side of the dispatcher: starts and replaces the process, sends plans, and receives results. Volcano:
the methods of the scheduler cache (Bind, Evict, UpdateJobStatus).

`emit` is an argument of `run_once`; it does not block and calls no callback. Every emitted operation gets exactly one
result, in the event loop, also if the dispatcher ends or hangs: then the result of each remaining operation is
`unknown`, and its object must be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from volcano_py.kube.backoff import Backoff
from volcano_py.kube.clock import boottime
from volcano_py.kube.request_counts import RequestCounts
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.dispatch.messages import (
    DispatcherSettings,
    DispatcherStart,
    FromDispatcher,
    Heartbeat,
    Leading,
    Plan,
    Result,
    Results,
    Revoke,
    SetLogLevel,
    Stop,
)
from volcano_py.scheduler.dispatch.pipe import Pipe
from volcano_py.scheduler.model.plan import Bind, Evict, Operation

log = logging.getLogger(__name__)

START_TIMEOUT = 30.0
"""Seconds until the first heartbeat of a dispatcher, at least: on a busy machine, its imports take long."""
STOP_TIMEOUT = 10.0
"""Seconds between Stop and SIGKILL."""
STEADY = 60.0
"""Seconds that a dispatcher must run before its end counts as the first one."""
MAX_OPERATIONS = 10_000
"""Operations of one frame: the statuses of a large cluster together could exceed its maximum length."""
MAX_ENDS = 5
"""Number of consecutive ends, each soon after the start, after which the dispatcher counts as failed."""


def _frames(operations: Sequence[Operation]) -> Iterator[tuple[int, list[Operation]]]:
    """The operations in parts that a frame has space for. Binds that wait for each other stay together."""
    together = any(isinstance(op, Bind) and (op.steps or op.barrier) for op in operations)
    size = max(1, len(operations) if together else MAX_OPERATIONS)
    for begin in range(0, len(operations), size):
        yield begin, list(operations[begin : begin + size])


class DispatcherHandle:
    """`on_result(operation, result)` and `on_leading(leading)` are called from the event loop."""

    def __init__(
        self,
        settings: DispatcherSettings,
        on_result: Callable[[Operation, Result], None],
        on_leading: Callable[[bool], None],
    ) -> None:
        self.leading = False
        """Whether the dispatcher accepts plans."""
        self.prepared: Callable[[], bool] = lambda: True
        """Whether the model is current enough for a new leader to decide."""
        self.holder = ""
        """The holder of the Lease, as last observed by the dispatcher."""
        self.restarts = 0
        self.requests = RequestCounts()
        """The dispatchers' requests."""
        self._settings = settings
        self._on_result = on_result
        self._on_leading = on_leading
        self._pipe: Pipe | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._unanswered: dict[int, Operation] = {}
        self._next_id = 1
        self._statements = 0
        self._window = 0
        self._gone = asyncio.Event()
        self._stopping = False
        self._started = 0.0
        self._ends = 0
        self._silent = 0.0
        self._beating = False
        self._problem = ""

    @property
    def unanswered(self) -> int:
        """Number of operations without a result so far."""
        return len(self._unanswered)

    def pending(self) -> list[Bind | Evict]:
        """The binds and evictions without a result so far."""
        return [op for op in self._unanswered.values() if isinstance(op, Bind | Evict)]

    @property
    def deciding(self) -> bool:
        """Whether plans may be made: this process leads, and has what a new leader must know."""
        return self.leading and self.prepared()

    @property
    def _timeout(self) -> float:
        """Seconds without a heartbeat after which the dispatcher is replaced."""
        timeout = self._settings.heartbeat_timeout
        return timeout if self._beating else max(timeout, START_TIMEOUT)

    @property
    def credits(self) -> int:
        """The number of operations that may be emitted now. A statement may exceed it; the next cycle then waits."""
        return max(0, self._window - len(self._unanswered)) if self.leading else 0

    @property
    def pid(self) -> int:
        """Process ID of the dispatcher, 0 if it does not run."""
        return self._process.pid if self._process else 0

    def problem(self) -> str:
        """Why the dispatcher is unhealthy, for /healthz; empty when it is healthy."""
        if self._ends >= MAX_ENDS:
            return f"it ended {self._ends} times in a row soon after it was started"
        if self._silent > self._timeout / 2:
            return f"no heartbeat for {self._silent:.0f} s"
        return ""

    def election_problem(self) -> str:
        """Why the election is unhealthy, for /healthz; empty when it is healthy, with any leader."""
        return self._problem

    def emit(self, operations: Sequence[Operation]) -> None:
        """Send operations that belong together."""
        first = self._next_id
        self._next_id += len(operations)
        self._unanswered.update(zip(range(first, self._next_id), operations, strict=True))
        if self._pipe is not None and not self._pipe.closed:
            self._statements += 1
            for begin, part in _frames(operations):
                self._pipe.send(Plan(self._statements, first + begin, part))
        else:
            # Not now: the caller is in the middle of its cycle.
            ids = list(range(first, self._next_id))
            asyncio.get_running_loop().call_soon(self._answer, ids, "lost", "the dispatcher does not run")

    def revoke(self, what: Revoke) -> None:
        """Withdraw operations that wait for a deleted object."""
        if self._pipe is not None and self._unanswered:
            self._pipe.send(what)

    def set_log_level(self, level: str) -> None:
        """Change the dispatcher's log level; one that is started later has it, too."""
        self._settings = replace(self._settings, log_level=level)
        if self._pipe is not None:
            self._pipe.send(SetLogLevel(level))

    def beat(self) -> None:
        """Send a heartbeat; `run` does it while the event loop runs."""
        if self._pipe is not None:
            self._pipe.send(Heartbeat())

    async def run(self) -> None:
        """Keep a dispatcher running until cancelled, then stop it. Raises the error that ended one of its parts."""
        try:
            await run_all(
                {
                    "dispatcher": self._keep_running(),
                    "decider heartbeat": self._keep_beating(),
                    "dispatcher watchdog": self._watch(),
                }
            )
        finally:
            await self._stop()

    async def _keep_running(self) -> None:
        backoff = Backoff(0.2, 10.0)
        while True:
            await self._spawn()
            await self._gone.wait()
            code = await self._reap()
            self.restarts += 1
            if time.monotonic() - self._started > STEADY:
                backoff.reset()
                self._ends = 0
            self._ends += 1
            log.error("the dispatcher ended with code %s; starting it again", code)
            await asyncio.sleep(backoff.next())

    async def _keep_beating(self) -> None:
        while True:
            self.beat()
            await asyncio.sleep(min(2.0, self._settings.heartbeat_timeout / 5))

    async def _watch(self) -> None:
        """Replace a dispatcher that sends nothing during the heartbeat timeout."""
        pause = min(1.0, self._settings.heartbeat_timeout / 10)
        before = boottime()
        while True:
            await asyncio.sleep(pause)
            now = boottime()
            # A long cycle blocks this event loop: nothing can be received meanwhile.
            self._silent += min(now - before, 2 * pause)
            before = now
            if self._silent > self._timeout and self._pipe is not None and not self._pipe.closed:
                log.error("no heartbeat from the dispatcher for %.0f s: killing it", self._silent)
                if self._process is not None:
                    self._process.kill()
                self._pipe.close()
                self._lost("it sent no heartbeat")

    async def _spawn(self) -> None:
        own_end, other_end = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "volcano_py.scheduler.dispatch", str(other_end.fileno())],
                pass_fds=(other_end.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        finally:
            other_end.close()
        self._gone.clear()
        self._started = time.monotonic()
        self._silent, self._beating, self._problem = 0.0, False, ""
        self._pipe = Pipe(own_end, FromDispatcher, self._receive, self._lost)
        self._pipe.send(DispatcherStart(self._settings, os.getpid()))

    def _receive(self, message: FromDispatcher) -> None:
        self._silent, self._beating = 0.0, True
        if isinstance(message, Leading):
            self.holder, self._window = message.holder, message.window
            if message.leading != self.leading:
                self.leading = message.leading
                self._on_leading(self.leading)
        elif isinstance(message, Results):
            for result in message.results:
                op = self._unanswered.pop(result.id, None)
                if op is not None:
                    self._deliver(op, result)
        else:
            self._problem = message.problem
            self.requests.add(message.requests)
            if self._ends and time.monotonic() - self._started > STEADY:
                self._ends = 0

    def _lost(self, why: str) -> None:
        if not self._stopping:
            log.error("lost the dispatcher: %s", why)
        if self.leading:
            self.leading = False
            self._on_leading(False)
        self._answer(list(self._unanswered), "unknown", "the dispatcher ended")
        self._gone.set()

    def _answer(self, ids: list[int], outcome: str, message: str) -> None:
        for id in ids:
            op = self._unanswered.pop(id, None)
            if op is not None:
                self._deliver(op, Result(id, outcome, message))  # type: ignore[arg-type]

    def _deliver(self, op: Operation, result: Result) -> None:
        try:
            self._on_result(op, result)
        except Exception:
            # An error in the handling of one result must not affect the others.
            log.exception("result %s of %s", result.outcome, type(op).__name__)

    async def _reap(self, timeout: float = STOP_TIMEOUT) -> int | None:
        process = self._process
        if process is None:
            return None
        deadline = asyncio.get_running_loop().time() + timeout
        while process.poll() is None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
        self._process = None
        return process.returncode

    async def _stop(self) -> None:
        self._stopping = True
        if self._pipe is not None and not self._pipe.closed:
            self._pipe.send(Stop())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._pipe.drain()
        await asyncio.shield(self._reap())
        if self._pipe is not None:
            self._pipe.close()
