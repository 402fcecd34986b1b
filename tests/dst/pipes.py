"""The pipe and the process of the dispatcher in memory: the same frames, without a socket or a fork."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import msgspec

from tests.dst.loop import current
from tests.dst.processes import Process
from tests.dst.virtual import PROCESS
from volcano_py.scheduler.dispatch import frames
from volcano_py.scheduler.dispatch.process import Process as Dispatcher

LATENCY = 0.0002


class End:
    """One end of a socket pair."""

    _ends: dict[int, End] = {}

    def __init__(self) -> None:
        self.peer: End
        self.pipe: SimulatedPipe | None = None
        self.waiting: list[bytes] = []
        self.closed = False
        self.number = current().next_serial()
        self._ends[self.number] = self

    @classmethod
    def pair(cls) -> tuple[End, End]:
        one, other = cls(), cls()
        one.peer, other.peer = other, one
        return one, other

    @classmethod
    def of(cls, number: int) -> End:
        return cls._ends[number]

    def fileno(self) -> int:
        return self.number

    def close(self) -> None:
        """The parent's copy of the child's end; the child has its own."""

    def arrive(self, data: bytes | None) -> None:
        """Bytes of the other end; None: it was closed."""
        if self.closed:
            return
        if self.pipe is None:
            if data is not None:
                self.waiting.append(data)
            return
        self.pipe.process.context.copy().run(
            lambda: current().call_later(LATENCY, self.pipe.received, data)  # type: ignore[union-attr]
        )


class SimulatedPipe:
    """Stands in for `dispatch.pipe.Pipe`."""

    def __init__(
        self, sock: End, union: Any, on_message: Callable[[Any], None], on_close: Callable[[str], None]
    ) -> None:
        process = PROCESS.get()
        assert process is not None
        self.process: Process = process
        self._end = sock
        self._reader = frames.Reader(union)
        self._on_message, self._on_close = on_message, on_close
        self.closed = False
        process.closes.append(self.close)
        sock.pipe = self
        waiting, sock.waiting = sock.waiting, []
        for data in waiting:
            sock.arrive(data)
        if sock.peer.closed:
            sock.arrive(None)

    def send(self, message: msgspec.Struct) -> None:
        if not self.closed and self.process.alive:
            self._end.peer.arrive(frames.encode(message))

    def close(self) -> None:
        if not self.closed:
            self.closed = self._end.closed = True
            self._end.peer.arrive(None)

    async def drain(self) -> None:
        pass

    def received(self, data: bytes | None) -> None:
        if self.closed or not self.process.alive:
            return
        if data is None:
            self.closed = self._end.closed = True
            self._on_close("the other end was closed")
            return
        for message in self._reader.feed(data):
            self._on_message(message)
            if self.closed:
                return


class SimulatedPopen:
    """Stands in for `subprocess.Popen` of a dispatcher."""

    started = 0

    def __init__(self, command: list[str], *, pass_fds: tuple[int, ...], **_: Any) -> None:
        parent = PROCESS.get()
        assert parent is not None
        SimulatedPopen.started += 1
        self.pid = SimulatedPopen.started
        self.process = Process(parent.loop, f"{parent.name}/dispatcher-{self.pid}", "dispatcher", parent.clock)
        self.process.cut_off = parent.cut_off
        parent.children.append(self.process)
        end = End.of(pass_fds[0])
        self.task = self.process.start(_serve(end), "dispatcher")
        self.task.add_done_callback(lambda _: self.process.kill())

    @property
    def returncode(self) -> int | None:
        if not self.task.done():
            return None
        if self.task.cancelled():
            return -9
        return 1 if self.task.exception() is not None else int(self.task.result())

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        self.process.kill()

    def send_signal(self, signal: int) -> None:
        self.process.kill()

    def wait(self) -> int | None:
        return self.returncode


async def _serve(end: End) -> int:
    code = await Dispatcher(end).run()  # type: ignore[arg-type]
    return code


class Sockets:
    """Stands in for the module `socket` in `dispatch.handle`."""

    @staticmethod
    def socketpair() -> tuple[End, End]:
        return End.pair()


class Subprocesses:
    """Stands in for the module `subprocess` in `dispatch.handle`."""

    Popen = SimulatedPopen
    DEVNULL = os.devnull


async def end_parent(pid: int) -> None:
    """Stands in for `dispatch.parent.end_parent`: the decider that started this dispatcher is killed."""
    child = PROCESS.get()
    for process in list(ALL):
        if child in process.children:
            process.kill()
    await asyncio.sleep(0)


ALL: list[Process] = []
"""The deciders of a simulation."""


def reset() -> None:
    """Forget the last simulation."""
    ALL.clear()
    End._ends.clear()
    SimulatedPopen.started = 0
