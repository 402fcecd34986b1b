"""One end of the pipe between decider and dispatcher: a non-blocking socket. Volcano has one process.

`send` writes the bytes that the kernel accepts and buffers the rest. Each call writes buffered bytes first, so that the
plan is also sent during a long cycle, in which the event loop does not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from volcano_py.scheduler.dispatch import frames

log = logging.getLogger(__name__)

BUFFER = 4 << 20
CHUNK = 1 << 18
MOST_BUFFERED = 1 << 28
"""Bytes that wait for the other end. More than all operations without a result take: it has stopped reading, and
messages that get no result, such as withdrawals, pile up."""


class Pipe:
    """Reads messages of `union` and calls `on_message`; calls `on_close` once when the other end is closed."""

    def __init__(
        self,
        sock: socket.socket,
        union: Any,
        on_message: Callable[[Any], None],
        on_close: Callable[[str], None],
    ) -> None:
        sock.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._reader = frames.Reader(union)
        self._on_message = on_message
        self._on_close = on_close
        self._out = bytearray()
        self._writing = False
        self.closed = False
        self._loop.add_reader(sock, self._readable)

    def send(self, message: msgspec.Struct) -> None:
        """Send one message, unless the other end is closed (`on_close` is then called)."""
        if not self.closed:
            self._out += frames.encode(message)
            self._flush()
            if len(self._out) > MOST_BUFFERED:
                self._lost(f"the other end has not read {len(self._out) >> 20} MiB")

    def close(self) -> None:
        """Close this end; `on_close` is not called."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._sock)
            if self._writing:
                self._loop.remove_writer(self._sock)
            self._sock.close()

    async def drain(self) -> None:
        """Wait until the kernel has accepted all data."""
        while self._out and not self.closed:
            await asyncio.sleep(0.005)

    def _flush(self) -> None:
        try:
            while self._out:
                # A slice, so that a large backlog is not copied for each part that is sent.
                with memoryview(self._out) as view:
                    sent = self._sock.send(view[:CHUNK])
                del self._out[:sent]
        except (BlockingIOError, InterruptedError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._sock, self._flush)
            return
        except OSError as error:
            self._lost(str(error))
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._sock)

    def _readable(self) -> None:
        try:
            data = self._sock.recv(1 << 20)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lost(str(error))
            return
        if not data:
            self._lost("the other end was closed")
            return
        try:
            for message in self._reader.feed(data):
                self._on_message(message)
                if self.closed:
                    return
        except frames.InvalidFrame as error:
            self._lost(f"invalid frame: {error}")
        except Exception as error:
            # The message may be partly processed: both ends start again from the state of the API server.
            log.exception("a message could not be handled")
            self._lost(f"a message could not be handled: {error!r}")

    def _lost(self, why: str) -> None:
        if not self.closed:
            self.close()
            # Not from inside `send`: its caller must not be called back in the middle of it.
            self._loop.call_soon(self._on_close, why)
