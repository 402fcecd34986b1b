"""A small HTTP/1.1 client for many small requests to one server.

Binding a pod costs the dispatcher several times less this way than through aiohttp, which matters where API
server, scheduler and dispatcher share a few cores. It does what an API server needs of a client and nothing
else: keep-alive, TLS, bodies by length, in chunks or until the end; no redirects, cookies, compression,
pipelining or proxies.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from urllib.parse import urlsplit

from volcano_py.kube.errors import Unreachable

IDLE = 45.0
"""Seconds after which an unused connection is not used again: servers close theirs after about a minute or
more.
"""
SWEEP = 0.5
"""Seconds between two looks at time-outs."""
LONGEST_HEAD = 1 << 17


class Answer:
    """A whole answer. Header names are lower case; only those that are needed are kept."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Malformed(Exception):
    """The server does not speak HTTP/1.1."""


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.deadline = 0.0
        self.idle_since = 0.0
        self.closed = False
        self._waiter: asyncio.Future[Answer] | None = None
        self._buffer = bytearray()
        self._head: tuple[int, dict[bytes, bytes]] | None = None
        self._chunks: list[bytes] | None = None
        self._needed = 0
        self._keep = True

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._waiter is not None

    def send(self, request: bytes, deadline: float) -> asyncio.Future[Answer]:
        """Send a whole request; the answer, or the error, comes in the future."""
        assert self.transport is not None and self._waiter is None
        self.deadline = deadline
        self._waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._waiter

    def fail(self, error: Exception) -> None:
        """Give up: close, and let whoever waits know."""
        self.closed = True
        if self.transport is not None:
            self.transport.abort()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # Nobody asked: the two ends are out of step.
            self.fail(Malformed("an answer without a request"))
            return
        self._buffer += data
        try:
            self._parse()
        except (ValueError, Malformed) as error:
            self.fail(Malformed(f"not an HTTP/1.1 answer: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self._waiter is not None and self._head is not None and self._needed < 0:
            self._keep = False
            self._finish(bytes(self._buffer))
            return
        self.fail(error or ConnectionResetError("the server closed the connection"))

    # ---- parsing

    def _parse(self) -> None:
        buffer = self._buffer
        while self._head is None:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(buffer) > LONGEST_HEAD:
                    raise Malformed("the headers are too long")
                return
            self._begin(bytes(buffer[:end]))
            del buffer[: end + 4]
        if self._chunks is not None:
            self._parse_chunks()
        elif 0 <= self._needed <= len(buffer):
            body = bytes(buffer[: self._needed])
            del buffer[: self._needed]
            self._finish(body)

    def _begin(self, head: bytes) -> None:
        first, _, rest = head.partition(b"\r\n")
        version, _, tail = first.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise Malformed(repr(first[:40]))
        status = int(tail[:3])
        if 100 <= status < 200:
            return
        headers: dict[bytes, bytes] = {}
        for line in rest.split(b"\r\n"):
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        self._head = status, headers
        connection = headers.get(b"connection", b"").lower()
        self._keep = connection != b"close" if version == b"HTTP/1.1" else connection == b"keep-alive"
        if status in (204, 304):
            self._needed = 0
        elif headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            self._chunks = []
        elif b"content-length" in headers:
            self._needed = int(headers[b"content-length"])
        else:
            self._needed = -1

    def _parse_chunks(self) -> None:
        buffer, chunks = self._buffer, self._chunks
        assert chunks is not None
        while True:
            end = buffer.find(b"\r\n")
            if end < 0:
                return
            size = int(bytes(buffer[:end]).partition(b";")[0], 16)
            if size == 0:
                # An empty line ends the answer; trailers before it are of no interest.
                stop = buffer.find(b"\r\n\r\n", end)
                if stop < 0:
                    return
                del buffer[: stop + 4]
                self._finish(b"".join(chunks))
                return
            if len(buffer) < end + 2 + size + 2:
                return
            chunks.append(bytes(buffer[end + 2 : end + 2 + size]))
            del buffer[: end + 2 + size + 2]

    def _finish(self, body: bytes) -> None:
        assert self._head is not None
        status, headers = self._head
        waiter, self._waiter = self._waiter, None
        self._head, self._chunks, self._needed = None, None, 0
        if not self._keep or self._buffer:
            self.closed = True
            if self.transport is not None:
                self.transport.close()
        if waiter is not None and not waiter.done():
            waiter.set_result(Answer(status, headers, body))


class Pool:
    """Connections to one server, at most `size`. Those who come when all are busy wait in line."""

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
        """The path under which the API is served, as in a URL with a prefix."""
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

    async def request(self, data: bytes, timeout: float) -> Answer:
        """Send a whole request, get the whole answer. Raises Unreachable."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        connection = await self._get(deadline)
        self._busy.add(connection)
        try:
            return await connection.send(data, deadline)
        except (OSError, Malformed, TimeoutError) as error:
            raise Unreachable(str(error) or repr(error)) from error
        except asyncio.CancelledError:
            connection.fail(ConnectionAbortedError())
            raise
        finally:
            self._busy.discard(connection)
            if not connection.closed:
                connection.idle_since = loop.time()
                self._free.append(connection)
            self._next()

    def close(self) -> None:
        """Close all connections; requests under way fail."""
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
                # The last one used is the least likely to have been closed by the server.
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
        try:
            async with asyncio.timeout(min(self._connect_timeout, max(0.001, deadline - loop.time()))):
                _, connection = await loop.create_connection(
                    Connection, self._host, self._port, ssl=self._tls, server_hostname=self._server_hostname
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
            connection.fail(TimeoutError("no answer in time"))
        self._sweeper = loop.call_later(SWEEP, self._sweep) if self._busy or self._line else None
