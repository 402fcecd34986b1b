"""Limits for the connections of the webhook server: their number, and the time of handshake, header and idleness.

Any pod that can reach the server could hold all its file descriptors with connections that send nothing; the API server
could then connect no more, and with `failurePolicy: Fail` nothing could be created. A connection that is not in a
request may wait only for a while. When there are too many connections, the one that has waited longest is closed for
the new one, so that a request is always accepted.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from dataclasses import dataclass
from typing import Any

from aiohttp import web

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Times in seconds."""

    connections: int = 500
    """Connections that are open at once, those in their handshake included."""
    handshake: float = 5.0
    header: float = 10.0
    """From the connection to the end of the header of its first request."""
    idle: float = 60.0
    """From one request to the end of the header of the next one."""
    body: float = 10.0
    """From the header of a request to the end of its body."""


class Connections:
    """Accepts connections and gives them to aiohttp's server."""

    def __init__(self, runner: web.AppRunner, tls: ssl.SSLContext | None, limits: Limits) -> None:
        assert runner.server is not None
        self._server = runner.server
        self._tls = tls
        self._limits = limits
        self._open = 0
        self._waiting: dict[_Guard, None] = {}
        """Connections that are not in a request, the one that has waited longest first."""
        self._guards: dict[Any, _Guard] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except Exception as error:
                # For example, no file descriptor is left. Without this task nothing could be admitted.
                log.warning("a connection cannot be accepted: %r", error)
                await asyncio.sleep(0.1)
                continue
            if self._open >= self._limits.connections:
                oldest = next(iter(self._waiting), None)
                if oldest is None:
                    connection.close()
                    continue
                oldest.close()
            self._open += 1
            task = asyncio.create_task(self._serve(connection), name="webhook connection")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End handshakes that are not complete."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def begin(self, protocol: Any) -> None:
        """The header of a request is complete."""
        guard = self._guards.get(protocol)
        if guard is not None:
            guard.wait(None)
            self._waiting.pop(guard, None)

    def end(self, protocol: Any) -> None:
        """A request has been answered."""
        guard = self._guards.get(protocol)
        if guard is not None:
            guard.wait(self._limits.idle)
            self._waiting[guard] = None

    def opened(self, guard: _Guard) -> None:
        """A connection is established."""
        self._guards[guard.protocol] = guard
        self._waiting[guard] = None
        guard.wait(self._limits.header)

    def lost(self, guard: _Guard) -> None:
        """A connection has ended."""
        if self._guards.pop(guard.protocol, None) is not None:
            self._waiting.pop(guard, None)
            self._open -= 1

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        guard = _Guard(self, self._server())
        try:
            await loop.connect_accepted_socket(
                lambda: guard,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake if self._tls is not None else None,
            )
        except (Exception, asyncio.CancelledError) as error:
            connection.close()
            if guard.protocol not in self._guards:
                self._open -= 1
            if isinstance(error, asyncio.CancelledError):
                raise
            log.debug("a connection has ended in its handshake: %s", error)


class _Guard(asyncio.Protocol):
    """One connection: passes everything to aiohttp's protocol, and closes it when it waits for too long."""

    def __init__(self, connections: Connections, protocol: Any) -> None:
        self.protocol = protocol
        self._connections = connections
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, seconds: float | None) -> None:
        """Close the connection after this number of seconds; None: a request is in progress."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.close)

    def close(self) -> None:
        """Close the connection at once."""
        self.wait(None)
        if isinstance(self._transport, asyncio.Transport):
            self._transport.abort()
        self._connections.lost(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.protocol.connection_made(transport)
        self._connections.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.wait(None)
        self._connections.lost(self)
        self.protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def eof_received(self) -> bool | None:
        found: bool | None = self.protocol.eof_received()
        return found

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()


def listener(host: str, port: int) -> socket.socket:
    """A listening socket; without a host on all interfaces. Raises OSError."""
    if host:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server(address[:2], family=family, backlog=128)
    elif socket.has_dualstack_ipv6():
        made = socket.create_server(("", port), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True)
    else:
        made = socket.create_server(("", port), backlog=128)
    made.setblocking(False)
    return made
