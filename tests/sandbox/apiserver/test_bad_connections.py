"""Connections that misbehave cost a bounded amount, are dropped in the end, and no other client is affected."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import waiting
from tests.sandbox.clients import CONFIGMAPS, PODS, Http
from volcano_py.sandbox.apiserver.endpoints import watch
from volcano_py.sandbox.apiserver.http import server as server_module
from volcano_py.sandbox.cluster import Sandbox

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connection(sandbox: Sandbox) -> AsyncIterator[Pair]:
    """Raw bytes over TLS; what is not read soon stays with the server."""
    context = ssl.create_default_context(cadata=sandbox.authority.decode())
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, (sandbox.host, sandbox.server.port))
    reader, writer = await asyncio.open_connection(sock=plain, ssl=context, server_hostname=sandbox.host, limit=1024)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def head(sandbox: Sandbox, method: str, path: str, *more: str) -> bytes:
    """A request without its body."""
    lines = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {sandbox.token}", *more, "", "")
    return "\r\n".join(lines).encode()


async def answered(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Status and body of an answer; (0, "") if the server just closes."""
    async with waiting.limit("no answer"):
        with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            return int(lines[0].split()[1]), body.decode()
    return 0, ""


async def well(api: Http) -> None:
    """The server answers others."""
    async with waiting.limit("the server does not answer others"):
        await api.ok("GET", PODS)


async def test_a_body_that_breaks_off_leaves_no_trace(
    sandbox: Sandbox, api: Http, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    begun = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}'
    for more in (("Content-Length: 500",), ("Transfer-Encoding: chunked",)):
        async with connection(sandbox) as (_, writer):
            writer.write(head(sandbox, "POST", CONFIGMAPS, "Content-Type: application/json", *more))
            writer.write(begun if "500" in more[0] else b"%x\r\n%s" % (len(begun) + 9, begun))
            await writer.drain()
            await asyncio.sleep(0.05)
        await well(api)
    names = [item["metadata"]["name"] for item in (await api.ok("GET", CONFIGMAPS))["items"]]
    assert "a" not in names
    assert not [record for record in caplog.records if record.exc_info], caplog.text


async def test_slow_heads_are_disconnected(sandbox: Sandbox, api: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_SECONDS", 0.5)
    async with Sandbox(nodes=0, hollow=False) as impatient, contextlib.AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connection(impatient)) for _ in range(20)]
        for _, writer in slow:
            writer.write(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        for _ in range(3):
            await asyncio.sleep(0.1)
            for _, writer in slow:
                writer.write(b"a")
        for reader, _ in slow:
            assert await answered(reader) == (0, "")


async def test_bodies_in_invalid_encodings_are_rejected(sandbox: Sandbox, api: Http) -> None:
    broken = {
        "Transfer-Encoding: chunked": b"zz\r\nnothing\r\n",
        "Content-Encoding: gzip\r\nContent-Length: 9": b"not gzip!",
        "Content-Encoding: deflate\r\nContent-Length: 4": b"\xff\xff\xff\xff",
        "Content-Length: -1": b"{}",
        "Content-Length: 2\r\nContent-Length: 3": b"{} ",
    }
    for more, body in broken.items():
        async with connection(sandbox) as (reader, writer):
            writer.write(head(sandbox, "POST", CONFIGMAPS, "Content-Type: application/json", more) + body)
            status, text = await answered(reader)
            assert status == 400 and "Traceback" not in text, (more, status, text)
    await well(api)


async def test_a_slow_body_is_rejected(sandbox: Sandbox, api: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "BODY_SECONDS", 0.3)
    async with connection(sandbox) as (reader, writer):
        more = ("Content-Type: application/json", "Content-Length: 1000", "Connection: close")
        writer.write(head(sandbox, "POST", CONFIGMAPS, *more))
        for _ in range(5):
            writer.write(b"{")
            await asyncio.sleep(0.05)
        await well(api)
        status, text = await answered(reader)
    assert status == 408 and "did not arrive" in text


async def test_a_watch_without_a_reader_is_disconnected(
    sandbox: Sandbox, api: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "QUEUE_BYTES", 1024 * 1024)
    big = {"metadata": {"name": "big"}, "data": {"x": "y" * 300_000}}
    await api.ok("POST", CONFIGMAPS, big)
    path = f"{CONFIGMAPS}?watch=true&resourceVersion={sandbox.api.store.revision}"
    async with connection(sandbox) as (deaf, writer), api.stream(path) as lines:
        writer.write(head(sandbox, "GET", path))
        await asyncio.sleep(0.1)
        assert len(sandbox.server.watchers) == 2
        for number in range(40):
            await api.ok("PATCH", CONFIGMAPS + "/big", {"data": {"n": str(number)}}, "application/merge-patch+json")
            event = await waiting.within(anext(lines), "the watch got no event")
            assert event["object"]["data"]["n"] == str(number), "who reads is served at once"
            assert all(w.size <= watch.QUEUE_BYTES for w in sandbox.server.watchers)
        assert len(sandbox.server.watchers) == 1, "who does not read is gone"
        read = 0
        with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            async with waiting.limit("the connection is still open"):
                while data := await deaf.read(65536):
                    read += len(data)
        assert read < 20 * 300_000


async def test_many_initial_events_do_not_end_a_watch(
    sandbox: Sandbox, api: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "QUEUE_BYTES", 100_000)
    for number in range(8):
        await api.ok("POST", CONFIGMAPS, {"metadata": {"name": f"big-{number}"}, "data": {"x": "y" * 500_000}})
    async with connection(sandbox) as (reader, writer):
        writer.write(head(sandbox, "GET", CONFIGMAPS + "?watch=true"))
        await asyncio.sleep(0.2)
        await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "last"}, "data": {"x": "y" * 50_000}})
        seen = b""
        async with waiting.limit("the last event has not come"):
            while b'"name":"last"' not in seen:
                seen = seen[-100:] + await reader.read(65536)


async def test_watches_of_clients_that_left_are_removed(sandbox: Sandbox, api: Http) -> None:
    async with connection(sandbox) as (_, writer):
        writer.write(head(sandbox, "GET", CONFIGMAPS + "?watch=true&resourceVersion=0"))
        await asyncio.sleep(0.1)
        assert len(sandbox.server.watchers) == 1
    await asyncio.sleep(0.1)
    sandbox.server.remind_watchers()
    await asyncio.sleep(0)
    assert not sandbox.server.watchers


@pytest.mark.parametrize(
    "noise", [b"\x16\x03\x01" * 100, b"\x00" * 5000, b"GET / SPDY/9\r\n\r\n", b"\xff\xfe HTTP/1.1\r\n\r\n"]
)
async def test_noise_is_rejected(sandbox: Sandbox, api: Http, noise: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with connection(sandbox) as (reader, writer):
        writer.write(noise)
        writer.write_eof() if writer.can_write_eof() else None
        await asyncio.sleep(0.05)
        writer.write(b"\r\n\r\n")
        status, text = await answered(reader)
    assert status in (0, 400) and "Traceback" not in text
    await well(api)


async def test_endless_heads_are_rejected(sandbox: Sandbox, api: Http) -> None:
    for flood in (b"X-A: " + b"a" * 100_000, b"".join(b"X-%d: a\r\n" % n for n in range(5000))):
        async with connection(sandbox) as (reader, writer):
            writer.write(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n" + flood + b"\r\n\r\n")
            status, text = await answered(reader)
            assert status in (400, 431, 0) and "Traceback" not in text
    await well(api)


async def test_no_tls_is_no_harm(sandbox: Sandbox, api: Http) -> None:
    reader, writer = await asyncio.open_connection(sandbox.host, sandbox.server.port)
    writer.write(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n")
    await answered(reader)
    writer.close()
    await well(api)
