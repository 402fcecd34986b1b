"""An HTTP proxy on loopback between a component and an API server, which can lie, stall and throttle.

    async with LyingProxy(sandbox.url, sandbox.authority) as proxy:
        proxy.write_kubeconfig(path, sandbox.token)
        proxy.lie(("PUT", "leases", "", False), "html", times=3)

Everything else goes through as it is. `seen` counts what the component asked for, `carried_out` what reached the
server.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import aiohttp
from yarl import URL

from tests.faults import lies
from tests.faults.lies import LIES
from tests.faults.requests import Request, describe
from volcano_py.kube import certificates
from volcano_py.sandbox import kubeconfig

__all__ = ["LIES", "LyingProxy", "Request"]

HOP_BY_HOP = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}
LONGEST = 1 << 26
"""Bytes of one line of a watch."""


@dataclass
class _Lie:
    request: Request | None
    name: str
    left: int


class LyingProxy:
    """`tls`: serve HTTPS, which makes it possible to hold handshakes."""

    def __init__(self, target: str, authority: bytes | None = None, *, tls: bool = False) -> None:
        self.seen: Counter[Request] = Counter()
        """Requests by kind, whatever became of them."""
        self.lied: Counter[tuple[Request, str]] = Counter()
        """Lies that were sent."""
        self.carried_out: Counter[Request] = Counter()
        """Requests that reached the server."""
        self.writes: list[tuple[float, Request]] = []
        """Those that the server says have changed something, each with the time (monotonic) of its answer."""
        self.dropped: Counter[Request] = Counter()
        """Stalled requests whose client had gone by then."""
        self.refused: Counter[Request] = Counter()
        """Requests that were throttled."""
        self.port = 0
        self._target = target
        self._authority = authority
        self._made = certificates.make() if tls else None
        self._lies: list[_Lie] = []
        self._throttled: set[Request] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._stalled: set[Request] | None = set()
        self.stalled = 0  # requests that wait now
        self._accepting = asyncio.Event()
        self._accepting.set()
        self.held = 0  # connections that wait for their handshake now
        self._extra: dict[str, list[bytes]] = {}
        self._watches: dict[str, set[asyncio.StreamWriter]] = {}
        self._connections: set[asyncio.Task[None]] = set()

    # ---- what a test says ------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the component finds it."""
        return f"{'https' if self._made else 'http'}://127.0.0.1:{self.port}"

    def write_kubeconfig(self, path: Path, token: str) -> str:
        """Write a kubeconfig that leads here; returns its path."""
        authority = (
            self._made.authority if self._made else (self._authority or certificates.new_authority().certificate)
        )
        kubeconfig.write(path, self.url, authority, token)
        return str(path)

    def lie(self, request: Request | None, lie: str, times: int = 1) -> None:
        """Answer the next `times` such requests (None: whatever they are) with one of LIES."""
        assert lie in LIES, lie
        self._lies.append(_Lie(request, lie, times))

    def be_honest(self) -> None:
        """Forget all lies, throttle and stall nothing."""
        self._lies.clear()
        self._throttled.clear()
        self.flow()
        self.accept()

    def lies_left(self) -> int:
        """How many lies have not been sent yet."""
        return sum(lie.left for lie in self._lies)

    def throttle(self, *requests: Request) -> None:
        """Answer such requests with 429 from now on."""
        self._throttled.update(requests)

    def stall(self, *requests: Request) -> None:
        """Hold such requests (none named: all) instead of passing them on."""
        self._stalled = set(requests) or None
        self._flowing.clear()

    def flow(self) -> None:
        """Pass on what was held, unless its client has gone, and everything else."""
        self._flowing.set()
        self._stalled = set()

    def hold(self) -> None:
        """Let new connections wait for their TLS handshake; cut those that are open."""
        assert self._made is not None, "only a proxy with TLS can hold handshakes"
        self._accepting.clear()
        self.cut()

    def cut(self) -> None:
        """Close all connections that are open."""
        for task in self._connections:
            task.cancel()

    def accept(self) -> None:
        """Serve the connections that were held, and new ones."""
        self._accepting.set()

    def add(self, resource: str, body: bytes) -> None:
        """Put an object, as it is, into every list of a resource and into the watches that are open."""
        self._extra.setdefault(resource, []).append(body)
        self.send(resource, b'{"type":"ADDED","object":' + body + b"}")

    def send(self, resource: str, line: bytes) -> int:
        """Send a line on all open watches of a resource; how many there are."""
        for writer in self._watches.get(resource, ()):
            writer.write(_chunk(line + b"\n"))
        return len(self._watches.get(resource, ()))

    def withdraw(self, resource: str) -> None:
        """Take all added objects out of the lists of a resource."""
        self._extra.pop(resource, None)

    # ---- serving ---------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> LyingProxy:
        context: ssl.SSLContext | None = None
        if self._target.startswith("https"):
            context = ssl.create_default_context(cadata=self._authority.decode() if self._authority else None)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context or True), auto_decompress=False, read_bufsize=1 << 20
        )
        self._context = self._made.context() if self._made else None
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=LONGEST)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._session.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if self._context is not None:
                self.held += 1
                try:
                    await self._accepting.wait()
                finally:
                    self.held -= 1
                await writer.start_tls(self._context)
            while await self._one_request(reader, writer):
                pass
        except (OSError, aiohttp.ClientError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client or the server has gone, which the other end notices; or `cut` was called.
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection can be used again."""
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return False
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = describe(method, target)
        self.seen[request] += 1
        if request in self._throttled:
            self.refused[request] += 1
            status = b'{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,"message":"slow down"}'
            writer.write(lies.whole(429, status).replace(b" OK", b" Too Many Requests", 1))
            await writer.drain()
            return True
        lie = self._next_lie(request)
        if lie is not None and lie not in lies.NEEDS_THE_TRUTH:
            self.lied[request, lie] += 1
            await lies.send(lie, reader, writer)
            return False
        if self._stalled is None or request in self._stalled:
            self.stalled += 1
            try:
                if not await self._wait_for_flow(reader):
                    self.dropped[request] += 1
                    return False
            finally:
                self.stalled -= 1
        self.carried_out[request] += 1
        kept = {name: value for name, value in headers.items() if name not in HOP_BY_HOP}
        async with self._session.request(
            method,
            URL(self._target + target, encoded=True),
            headers=kept,
            data=body or None,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            if method != "GET" and answer.status < 300:
                self.writes.append((time.monotonic(), request))
            if request[3] and answer.status == 200 and lie is None:
                await self._pass_watch(request[1], answer, writer)
                return False
            truth = b"" if request[3] else await answer.read()
            if lie is not None:
                self.lied[request, lie] += 1
                await lies.send(lie, reader, writer, truth or b'{"type":"ADDED","object":{"met')
                return False
            if request[0] == "LIST" and answer.status == 200:
                truth = self._with_extra(request[1], truth)
            again = "\r\nRetry-After: " + answer.headers["Retry-After"] if "Retry-After" in answer.headers else ""
            media = answer.headers.get("Content-Type", "application/json")
            first = f"HTTP/1.1 {answer.status} {answer.reason}\r\nContent-Type: {media}{again}"
            writer.write(f"{first}\r\nContent-Length: {len(truth)}\r\n\r\n".encode() + truth)
            await writer.drain()
            return True

    async def _wait_for_flow(self, reader: asyncio.StreamReader) -> bool:
        flow = asyncio.ensure_future(self._flowing.wait())
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((flow, gone), return_when=asyncio.FIRST_COMPLETED)
            return not gone.done()
        finally:
            for waiting in (flow, gone):
                waiting.cancel()
            await asyncio.gather(flow, gone, return_exceptions=True)

    async def _pass_watch(self, resource: str, answer: aiohttp.ClientResponse, writer: asyncio.StreamWriter) -> None:
        writer.write(lies.head(200, "application/json", None))
        watches = self._watches.setdefault(resource, set())
        watches.add(writer)
        try:
            tail = b""
            async for part in answer.content.iter_any():
                # Whole lines only: another line may be sent in between.
                *complete, tail = (tail + part).split(b"\n")
                if complete:
                    writer.write(_chunk(b"\n".join(complete) + b"\n"))
                    await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        finally:
            watches.discard(writer)

    def _next_lie(self, request: Request) -> str | None:
        for lie in self._lies:
            if lie.left and lie.request in (None, request):
                lie.left -= 1
                return lie.name
        return None

    def _with_extra(self, resource: str, truth: bytes) -> bytes:
        extra = self._extra.get(resource)
        if not extra:
            return truth
        before, found, after = truth.partition(b'"items":[')
        assert found, truth[:200]
        more = b",".join(extra)
        return before + found + more + (b"" if after.lstrip().startswith(b"]") else b",") + after


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
