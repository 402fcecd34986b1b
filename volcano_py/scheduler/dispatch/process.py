"""The dispatcher process: pipe, Lease, machine and writes put together.

It holds the leadership and needs the decider's heartbeat. When the decider is silent for too long it stops
writing, gives the Lease back, and ends the decider, which is its parent; when the decider is gone it stops
writing and ends itself. Before each request it looks at its own monotonic clock: once the Lease may have run
out, nothing is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time

from volcano_py.kube import Client, KubeError
from volcano_py.kube.leader import LeaderElection, default_identity
from volcano_py.scheduler.dispatch.machine import Failure, Machine
from volcano_py.scheduler.dispatch.messages import (
    FromDecider,
    Heartbeat,
    Leading,
    Plan,
    Results,
    Revoke,
    Settings,
    Start,
    Stop,
)
from volcano_py.scheduler.dispatch.pipe import Pipe
from volcano_py.scheduler.dispatch.waiting import Item
from volcano_py.scheduler.dispatch.writes import NotLeading, Writer

log = logging.getLogger(__name__)

WINDOW = 20_000
"""Operations that may be unanswered at a time."""
FLUSH = 0.002
"""Seconds for which results are collected before they are sent."""
REQUEST_TIMEOUT = 8.0
"""Seconds for one request; shorter than the renew deadline, so that a hung server is noticed in time."""
LAST_WRITES = 5.0
"""Seconds for which writes on their way are awaited at the end."""
GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL for a silent decider."""


class Process:
    """Runs until the decider says stop, is gone, or is silent. `run` returns the exit code."""

    def __init__(self, sock: socket.socket) -> None:
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._started: asyncio.Future[Start] = asyncio.get_running_loop().create_future()
        self._pipe = Pipe(sock, FromDecider, self._hear, self._decider_gone)
        self._machine = Machine()
        self._election: LeaderElection | None = None
        self._settings = Settings()
        self._decider = 0
        self._writer: Writer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._wake_timer: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Serve the decider. Raises KubeError when there are no credentials."""
        loop = asyncio.get_running_loop()
        # Ctrl-C reaches the whole process group; the decider then says how we are to end.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, self._finish, 0)
        await asyncio.wait((self._started, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if not self._started.done():
            return self._ended.result()
        start = self._started.result()
        settings = self._settings = start.settings
        self._decider = start.decider
        logging.getLogger().setLevel(settings.log_level)
        self._machine = Machine(settings.in_flight, settings.heartbeat_timeout)
        self._machine.beat(time.monotonic())
        async with (
            Client.for_flags(
                settings.kubeconfig,
                settings.master,
                qps=settings.qps,
                burst=settings.burst,
                timeout=REQUEST_TIMEOUT,
                retries=0,
                gate=self._gate,
                lean=True,
                user_agent="volcano-py/dispatcher",
            ) as client,
            # The Lease must not queue behind a thousand binds.
            Client.for_flags(
                settings.kubeconfig, settings.master, timeout=settings.renew_deadline / 2, retries=1
            ) as lease_client,
        ):
            self._writer = Writer(client, settings.component, socket.gethostname(), time.time)
            election = asyncio.create_task(self._lead(lease_client))
            watchdog = asyncio.create_task(self._watch_the_decider())
            try:
                code = await self._ended
                await self._last_writes()
            finally:
                watchdog.cancel()
                election.cancel()
                await asyncio.gather(watchdog, election, return_exceptions=True)
            if code:
                await self._end_decider()
            return code

    # ---- the decider ------------------------------------------------------------------------------------

    def _hear(self, message: FromDecider) -> None:
        now = time.monotonic()
        match message:
            case Plan():
                self._machine.plan(message.first, message.operations, now)
            case Heartbeat():
                self._machine.beat(now)
                return
            case Revoke():
                self._machine.revoke(message, now)
            case Start():
                if not self._started.done():
                    self._started.set_result(message)
                return
            case Stop():
                self._finish(0)
                return
        self._pump()

    def _decider_gone(self, why: str) -> None:
        log.warning("the decider is gone: %s", why)
        self._finish(0)

    async def _watch_the_decider(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._settings.heartbeat_timeout / 4))
            if self._machine.silent(time.monotonic()):
                log.error(
                    "the decider gave no sign of life for %.0f s: writing stops",
                    self._settings.heartbeat_timeout,
                )
                self._finish(3)
                return

    async def _end_decider(self) -> None:
        for signal_, pause in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 0.0)):
            # Our parent has its id for as long as it lives; afterwards we have another parent.
            if not self._decider or os.getppid() != self._decider:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._decider, signal_)
            deadline = time.monotonic() + pause
            while time.monotonic() < deadline and os.getppid() == self._decider:
                await asyncio.sleep(0.1)

    def _finish(self, code: int) -> None:
        if not self._ended.done():
            self._set_leading(False)
            self._ended.set_result(code)

    async def _last_writes(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WRITES)
        self._flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._pipe.drain()

    # ---- the Lease --------------------------------------------------------------------------------------

    async def _lead(self, client: Client) -> None:
        settings = self._settings
        if not settings.leader_elect:
            self._set_leading(True)
            return
        self._pipe.send(Leading(False))
        # One identity for the life of the process: after an outage we may take our own Lease again at once.
        identity = settings.identity or default_identity()
        while not self._ended.done():
            self._election = LeaderElection(
                client,
                settings.lease_namespace,
                settings.lease_name,
                identity,
                lease_duration=settings.lease_duration,
                renew_deadline=settings.renew_deadline,
                retry_period=settings.retry_period,
                on_started=lambda: self._set_leading(True),
                on_lost=lambda: self._set_leading(False),
            )
            await self._election.run()

    def _set_leading(self, leading: bool) -> None:
        if leading and self._ended.done():
            return
        if leading != self._machine.leading or leading:
            self._machine.lead(leading, time.monotonic())
            holder = self._election.observed_holder if self._election else ""
            self._flush()
            self._pipe.send(Leading(leading, holder, WINDOW if leading else 0))
            self._pump()

    def _gate(self) -> None:
        if not self._machine.leading:
            raise NotLeading("this dispatcher does not lead")
        if self._election is not None and not self._election.holds():
            raise NotLeading("the Lease may have run out")

    # ---- the API server ---------------------------------------------------------------------------------

    def _pump(self) -> None:
        now = time.monotonic()
        for item in self._machine.take(now):
            task = asyncio.create_task(self._carry_out(item))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        loop = asyncio.get_running_loop()
        if self._flush_timer is None:
            self._flush_timer = loop.call_later(FLUSH, self._flush)
        if self._wake_timer is not None:
            self._wake_timer.cancel()
            self._wake_timer = None
        wake = self._machine.wake_at(now)
        if wake is not None:
            self._wake_timer = loop.call_later(max(0.001, wake - now), self._pump)

    async def _carry_out(self, item: Item) -> None:
        assert self._writer is not None
        try:
            failure = await self._writer.write(item.op)
        except Exception as error:
            # A mistake of ours in one kind of operation must not keep its object busy for ever.
            log.exception("%s could not be carried out", type(item.op).__name__)
            failure = Failure("refused", f"{type(error).__name__}: {error}")
        now = time.monotonic()
        if failure is None:
            self._machine.done(item, now)
        else:
            if failure.kind in ("refused", "busy"):
                log.warning("%s %s: %s", type(item.op).__name__, "/".join(item.key[1:]), failure.message)
            self._machine.failed(item, failure, now)
        self._pump()

    def _flush(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        results = self._machine.results()
        if results:
            self._pipe.send(Results(results))


def main(descriptor: int) -> int:
    """Serve the decider at the other end of the inherited socket `descriptor`; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s dispatcher: %(message)s")

    async def serve() -> int:
        return await Process(socket.socket(fileno=descriptor)).run()

    try:
        return asyncio.run(serve())
    except KubeError as error:
        log.error("%s", error)
        return 2
