"""A small HTTP/1.1 client for many small requests to one server.

Binding a pod costs the dispatcher several times less CPU time than with aiohttp, which matters if API
server, scheduler and dispatcher share a few cores. It only supports the features
that an API server needs: keep-alive, TLS, bodies by length, in chunks or until the end; no redirects, cookies,
compression, pipelining or proxies. httptools (the parser of Node.js) parses the responses.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

import httptools

from volcano_py.kube.errors import Unreachable

IDLE = 45.0
"""Seconds after which an idle connection is not reused: servers close theirs after about a minute or more."""
SWEEP = 0.5
"""Seconds between two checks of timeouts."""
MAX_HEAD = 1 << 17
"""Maximum bytes of a response's headers."""
MAX_ANSWER = 1 << 26
"""Maximum bytes of a response, including framing. An API server stores no object above a few MiB."""


class Answer:
    """A complete response. Header names are lower case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Malformed(Exception):
    """The response is not HTTP/1.1, or too large."""


class PartialWrite(Exception):
    """The socket did not accept the whole request at once, and the rest must not be written later."""


_NO_LINGER = struct.pack("ii", 1, 0)


def _discard_unsent(transport: asyncio.Transport) -> None:
    """Close with a reset: bytes that the kernel has accepted but the server has not read are not delivered."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


class Connection(asyncio.Protocol):
    """One connection, one request at a time. The `on_...` methods are httptools' callbacks."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self.transport: asyncio.Transport | None = None
        self.deadline = 0.0
        self.idle_since = 0.0
        self.closed = False
        self._waiter: asyncio.Future[Answer] | None = None
        self._begin()

    def _begin(self) -> None:
        """Reset the state of the last response. A new parser costs less than a microsecond."""
        self._parser = httptools.HttpResponseParser(self)
        self._received = 0
        self._headers: dict[bytes, bytes] = {}
        self._in_body = False
        self._chunks: list[bytes] = []

    @property
    def busy(self) -> bool:
        """Whether a request is in progress."""
        return self._waiter is not None

    def send(self, request: bytes, deadline: float, at_once: bool = False) -> asyncio.Future[Answer]:
        """Send a whole request; the future receives the response or the error.

        `at_once`: if the kernel does not accept all of it now, the rest is never sent, and the future fails with
        PartialWrite.
        """
        assert self.transport is not None and self._waiter is None
        self.deadline = deadline
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self._begin()
        self.transport.write(request)
        if at_once and self.transport.get_write_buffer_size():
            self.fail(PartialWrite("the server does not read the request"))
        return waiter

    def fail(self, error: Exception) -> None:
        """Close the connection; the current request fails with the error."""
        self.closed = True
        if self.transport is not None:
            if self._waiter is not None:
                _discard_unsent(self.transport)
            self.transport.abort()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # Requests and responses are out of step.
            self.fail(Malformed("a response without a request"))
            return
        self._received += len(data)
        if self._received > (MAX_ANSWER if self._in_body else MAX_HEAD + len(data)):
            self.fail(Malformed("the response is too large" if self._in_body else "the headers are too long"))
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(Malformed(f"not an HTTP/1.1 response: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self._waiter is not None and self._in_body and self._until_the_end():
            self._finish()
            return
        self.fail(error or ConnectionResetError("the server closed the connection"))

    # ---- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value.strip()

    def on_headers_complete(self) -> None:
        self._in_body = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)

    def on_message_begin(self) -> None:
        if self._waiter is None:
            self.fail(Malformed("two responses to one request"))

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() >= 200:
            self._finish()
        self._headers, self._in_body = {}, False

    def _until_the_end(self) -> bool:
        return b"content-length" not in self._headers and b"transfer-encoding" not in self._headers

    def _finish(self) -> None:
        answer = Answer(self._parser.get_status_code(), self._headers, b"".join(self._chunks))
        waiter, self._waiter = self._waiter, None
        if self.closed or not self._parser.should_keep_alive():
            self.closed = True
            if self.transport is not None:
                self.transport.close()
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)


class Pool:
    """Connections to one server, at most `size`. Further requests wait for a free connection."""

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext | None,
        server_hostname: str | None,
        size: int,
        connect_timeout: float = 10.0,
    ) -> None:
        parts = urlsplit(server)
        self._host = parts.hostname or "localhost"
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self.base = parts.path.rstrip("/")
        """The path prefix of the API in the server URL."""
        self.host_header = parts.netloc.rpartition("@")[2]
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._server_hostname = (server_hostname or self._host) if self._tls else None
        self._size = size
        self._connect_timeout = connect_timeout
        self._free: list[Connection] = []
        self._busy: set[Connection] = set()
        self._opening = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None

    async def request(self, data: bytes, timeout: float, gate: Callable[[], None] | None = None) -> Answer:
        """Send a whole request and return the whole response. Raises Unreachable.

        `gate` is called when a connection is available, possibly seconds later, and may raise to send nothing. A
        request with a gate is sent at once or never: bytes that wait in this process could be sent after another
        candidate has acquired the Lease.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        connection = await self._get(deadline)
        self._busy.add(connection)
        try:
            if gate is not None:
                gate()
            return await connection.send(data, deadline, at_once=gate is not None)
        except (OSError, Malformed, PartialWrite, TimeoutError) as error:
            raise Unreachable(str(error) or repr(error)) from error
        except asyncio.CancelledError:
            connection.fail(ConnectionAbortedError())
            raise
        finally:
            self._busy.discard(connection)
            if not connection.closed and connection.tls is self._tls:
                connection.idle_since = loop.time()
                self._free.append(connection)
            elif not connection.closed:
                connection.fail(ConnectionAbortedError())
            self._next()

    def use(self, tls: ssl.SSLContext) -> None:
        """Use this context for new connections; others are closed, busy ones after their response."""
        if self._tls is None or tls is self._tls:
            return
        self._tls = tls
        for connection in self._free:
            connection.fail(ConnectionAbortedError())
        self._free.clear()

    def close(self) -> None:
        """Close all connections; requests in progress fail."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in [*self._free, *self._busy]:
            connection.fail(ConnectionAbortedError("the client was closed"))
        self._free.clear()

    async def _get(self, deadline: float) -> Connection:
        loop = asyncio.get_running_loop()
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP, self._sweep)
        while True:
            while self._free:
                # The server is least likely to have closed the last one used.
                connection = self._free.pop()
                if not connection.closed and loop.time() - connection.idle_since < IDLE:
                    return connection
                if not connection.closed:
                    connection.fail(ConnectionAbortedError())
            if len(self._busy) + self._opening < self._size:
                return await self._open(deadline)
            waiter = loop.create_future()
            self._line.append(waiter)
            try:
                async with asyncio.timeout_at(deadline):
                    await waiter
            except TimeoutError:
                raise Unreachable("no free connection in time", sent=False) from None
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._next()
                raise

    async def _open(self, deadline: float) -> Connection:
        loop = asyncio.get_running_loop()
        self._opening += 1
        tls = self._tls
        try:
            async with asyncio.timeout(min(self._connect_timeout, max(0.001, deadline - loop.time()))):
                _, connection = await loop.create_connection(
                    lambda: Connection(tls), self._host, self._port, ssl=tls, server_hostname=self._server_hostname
                )
            return connection
        except BaseException as error:
            self._next()
            if isinstance(error, TimeoutError):
                raise Unreachable("no connection in time", sent=False) from None
            if isinstance(error, OSError):
                raise Unreachable(str(error), sent=False) from error
            raise
        finally:
            self._opening -= 1

    def _next(self) -> None:
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [c for c in self._busy if c.busy and c.deadline < now]:
            connection.fail(TimeoutError("no response in time"))
        self._sweeper = loop.call_later(SWEEP, self._sweep) if self._busy or self._line else None
