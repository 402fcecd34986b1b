"""The dispatcher process: pipe, Lease, machine and writes. Volcano: the scheduler cache's binder threads.

It has the leadership and requires the decider's heartbeat. Without it for too long, it stops writing, releases the
Lease, and ends the decider, which is its parent. When the decider has exited, it stops writing and exits, too.
Immediately before each request it checks its own clock: if the Lease may have expired, nothing is sent. When one of its
tasks ends unexpectedly, the process exits, and the decider starts another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from volcano_py.kube import Client
from volcano_py.kube.clock import boottime
from volcano_py.kube.request_counts import RequestCounts
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.dispatch.leadership import Leadership
from volcano_py.scheduler.dispatch.machine import Failure, Machine
from volcano_py.scheduler.dispatch.messages import (
    DispatcherSettings,
    DispatcherStart,
    FromDecider,
    Heartbeat,
    Leading,
    Plan,
    Results,
    Revoke,
    SetLogLevel,
    Stop,
)
from volcano_py.scheduler.dispatch.parent import end_parent
from volcano_py.scheduler.dispatch.pipe import Pipe
from volcano_py.scheduler.dispatch.waiting import Item
from volcano_py.scheduler.dispatch.writes import NotLeading, Writer

log = logging.getLogger(__name__)

WINDOW = 20_000
"""The maximum number of operations without a result."""
FLUSH = 0.002
"""Seconds during which results are collected before they are sent."""
REQUEST_TIMEOUT = 8.0
"""Timeout of one request in seconds. Less with a short renew deadline, so that a server that hangs is detected."""
FINAL_WRITES = 5.0
"""Seconds for writes in flight at the end."""


SILENT = 3
"""Exit code when the decider sends no heartbeat."""


class _Ended(Exception):
    """The regular end of the process."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Process:
    """Runs until the decider sends Stop, exits, or sends no heartbeat. `run` returns the exit code."""

    def __init__(self, sock: socket.socket) -> None:
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._started: asyncio.Future[DispatcherStart] = asyncio.get_running_loop().create_future()
        self._pipe = Pipe(sock, FromDecider, self._receive, self._decider_gone)
        self._machine = Machine()
        self._settings = DispatcherSettings()
        self._leadership = Leadership(self._settings, self._lead)
        self._requests = RequestCounts()
        self._decider = 0
        self._writer: Writer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._wake_timer: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Serve the decider. Raises KubeError without credentials, and the error that ended a task."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unexpected)
        # Ctrl-C reaches the whole process group; the decider then sends Stop.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, self._finish, 0)
        await asyncio.wait((self._started, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if not self._started.done():
            return self._ended.result()
        start = self._started.result()
        settings = self._settings = start.settings
        self._decider = start.decider
        logging.getLogger().setLevel(settings.log_level)
        self._machine = Machine(settings.max_in_flight, settings.heartbeat_timeout)
        self._machine.beat(boottime())
        leadership = self._leadership = Leadership(settings, self._lead)
        self._pipe.send(Leading(False))
        async with (
            Client.for_flags(
                settings.kubeconfig,
                settings.master,
                qps=settings.qps,
                burst=settings.burst,
                timeout=min(REQUEST_TIMEOUT, 0.8 * settings.renew_deadline),
                retries=0,
                gate=self._gate,
                lean=True,
                user_agent="volcano-py/dispatcher",
                requests=self._requests,
            ) as client,
            # Requests for the Lease must not wait behind a thousand binds; the election itself retries what fails.
            Client(
                client.credentials,
                timeout=settings.renew_deadline / 2,
                retries=0,
                gate=leadership.attempting,
                requests=self._requests,
            ) as lease_client,
        ):
            self._writer = Writer(client, settings.component, socket.gethostname(), time.time)
            parts = {
                "end": self._until_finished(),
                "election": leadership.run(lease_client),
                "lease": leadership.follow(),
                "decider watchdog": self._watch_the_decider(),
                "dispatcher heartbeat": self._keep_beating(),
            }
            try:
                await run_all({name: self._part(part) for name, part in parts.items()})
            except _Ended as end:
                code = end.code
        if code == SILENT:
            await end_parent(self._decider)
        return code

    async def _part(self, part: Coroutine[Any, Any, None]) -> None:
        try:
            await part
        finally:
            # Writing stops before the Lease is released.
            self._stop_writing()

    async def _until_finished(self) -> None:
        code = await self._ended
        await self._final_writes()
        raise _Ended(code)

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        error = context.get("exception")
        if "handle" in context and isinstance(error, Exception):
            # A callback (of a timer or a signal) has failed.
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._ended.done():
            self._stop_writing()
            self._ended.set_exception(error)

    # ---- the decider ------------------------------------------------------------------------------------

    def _receive(self, message: FromDecider) -> None:
        now = boottime()
        match message:
            case Plan():
                self._machine.plan(message.first, message.operations, now)
            case Heartbeat():
                self._machine.beat(now)
                return
            case Revoke():
                self._machine.revoke(message, now)
            case DispatcherStart():
                if not self._started.done():
                    self._started.set_result(message)
                return
            case SetLogLevel():
                logging.getLogger().setLevel(message.level)
                return
            case Stop():
                self._finish(0)
                return
        self._pump()

    def _decider_gone(self, why: str) -> None:
        log.warning("the decider has exited: %s", why)
        self._finish(0)

    async def _watch_the_decider(self) -> None:
        while not self._machine.silent(boottime()):
            await asyncio.sleep(min(1.0, self._settings.heartbeat_timeout / 4))
        log.error("no heartbeat from the decider for %.0f s: writing stops", self._settings.heartbeat_timeout)
        self._finish(SILENT)
        # `_finish` ends this task.
        await asyncio.Event().wait()

    async def _keep_beating(self) -> None:
        while True:
            self._pipe.send(Heartbeat(self._leadership.problem(), self._requests.take()))
            await asyncio.sleep(min(2.0, self._settings.heartbeat_timeout / 5))

    def _finish(self, code: int) -> None:
        if not self._ended.done():
            if code == SILENT:
                self._set_leading(False)
            elif self._machine.leading:
                self._machine.finish()
                self._flush()
                self._pipe.send(Leading(False, self._leadership.holder, 0))
            self._ended.set_result(code)

    async def _final_writes(self) -> None:
        # The Lease is still held; if it expires meanwhile, `_lead` cancels the writes.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FINAL_WRITES
        while (self._tasks or self._machine.backlog) and loop.time() < deadline:
            self._pump()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=deadline - loop.time(), return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(FLUSH)
        self._flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._pipe.drain()

    # ---- the Lease --------------------------------------------------------------------------------------

    def _lead(self, leading: bool) -> None:
        """Called when leadership begins or ends."""
        if leading and not self._ended.done():
            self._set_leading(True)
        elif not leading:
            self._stop_writing()

    def _stop_writing(self) -> None:
        """End leadership, and close the connections of writes in flight: they could hang until another one leads."""
        self._set_leading(False)
        for task in self._tasks:
            task.cancel()

    def _set_leading(self, leading: bool) -> None:
        if leading != self._machine.leading:
            self._machine.lead(leading, boottime())
            self._flush()
            self._pipe.send(Leading(leading, self._leadership.holder, WINDOW if leading else 0))
            self._pump()

    def _gate(self) -> None:
        if not self._machine.leading:
            raise NotLeading("this dispatcher does not lead")
        if not self._leadership.holds():
            raise NotLeading("the Lease may have expired")

    # ---- the API server ---------------------------------------------------------------------------------

    def _pump(self) -> None:
        now = boottime()
        for item in self._machine.take(now):
            task = asyncio.create_task(self._carry_out(item), name="write")
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended_write, item))
        loop = asyncio.get_running_loop()
        if self._machine.has_results:
            if not self._machine.awaits_results:
                self._flush()
            elif self._flush_timer is None:
                self._flush_timer = loop.call_later(FLUSH, self._flush)
        if self._wake_timer is not None:
            self._wake_timer.cancel()
            self._wake_timer = None
        wake = self._machine.wake_at(now)
        if wake is not None:
            self._wake_timer = loop.call_later(max(0.001, wake - now), self._pump)

    def _ended_write(self, item: Item, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            # Cancelled before its first step, so `_carry_out` did not handle it.
            failure = Failure("not-leading", "leadership ended before the write began", sent=False)
            self._machine.failed(item, failure, boottime())
            self._pump()
        elif (error := task.exception()) is not None:
            # The operation would never get a result.
            self._fail(error)

    async def _carry_out(self, item: Item) -> None:
        assert self._writer is not None
        try:
            failure = await self._writer.write(item.op)
        except asyncio.CancelledError:
            # Only `_stop_writing` cancels the task.
            failure = Failure("unreachable", "leadership ended while the write was in flight")
        except Exception as error:
            # An error in one kind of operation must not block its object forever.
            log.exception("%s could not be carried out", type(item.op).__name__)
            failure = Failure("rejected", f"{type(error).__name__}: {error}")
        now = boottime()
        if failure is None:
            self._machine.done(item, now)
        else:
            if failure.kind in ("rejected", "busy"):
                # The decider logs it, see `Reporter`.
                log.debug("%s %s: %s", type(item.op).__name__, "/".join(item.key[1:]), failure.message)
            self._machine.failed(item, failure, now)
        self._pump()

    def _flush(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        results = self._machine.results()
        if results:
            self._pipe.send(Results(results))
