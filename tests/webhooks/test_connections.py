"""Connections that send nothing, or slowly, end; and however many there are, a request is answered."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.waiting import budget
from tests.webhooks.test_server import AROUND, job, review
from volcano_py.kube import certificates
from volcano_py.webhooks import server
from volcano_py.webhooks.connections import Limits
from volcano_py.webhooks.paths import PATHS, AdmissionContext

LONG = 1000.0
REQUEST = json.dumps(review(job(minAvailable=1))).encode()
HEADER = b"POST /jobs/validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"


@asynccontextmanager
async def serving(limits: Limits, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    context: AdmissionContext = AROUND
    app = server.application(lambda: context, tuple(PATHS), body_limit=limits.body)
    async with server.listening(app, "127.0.0.1", 0, tls, limits=limits) as port:
        yield port


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What the server sends until it closes the connection."""
    async with asyncio.timeout(budget()):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def answered(port: int) -> int:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(budget())) as session:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"http://127.0.0.1:{port}/jobs/validate", data=REQUEST, headers=headers) as response:
            return response.status


@pytest.mark.parametrize("sent", [b"", HEADER % 5, HEADER[:20]])
async def test_a_connection_without_a_complete_header_ends(sent: bytes) -> None:
    async with serving(Limits(handshake=LONG, header=0.05, idle=LONG, body=LONG)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await ended(reader) == b""
        writer.close()


async def test_an_idle_connection_ends_after_its_request() -> None:
    async with serving(Limits(handshake=LONG, header=LONG, idle=0.05, body=LONG)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEADER % len(REQUEST) + b"\r\n" + REQUEST)
        assert (await ended(reader)).startswith(b"HTTP/1.1 200 OK")
        writer.close()


async def test_a_slow_body_is_an_error_and_ends_the_connection() -> None:
    async with serving(Limits(handshake=LONG, header=LONG, idle=LONG, body=0.05)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEADER % len(REQUEST) + b"\r\n" + REQUEST[:10])
        text = await ended(reader)
        assert text.startswith(b"HTTP/1.1 408 ") and b"the body was not complete within 0.05 s" in text
        writer.close()


async def test_a_handshake_that_is_not_completed_ends(tmp_path: Path) -> None:
    made = certificates.make()
    for name, text in (("crt", made.certificate), ("key", made.key)):
        (tmp_path / name).write_bytes(text)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    async with serving(Limits(handshake=0.05, header=LONG, idle=LONG, body=LONG), tls) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await ended(reader) == b""
        writer.close()
        trusting = ssl.create_default_context(cadata=made.authority.decode())
        trusting.check_hostname = False
        _, second = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        second.close()


async def test_more_connections_than_the_limit_do_not_keep_a_request_out() -> None:
    limits = Limits(connections=5, handshake=LONG, header=LONG, idle=LONG, body=LONG)
    async with serving(limits) as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        assert await answered(port) == 200
        assert await ended(idle[0][0]) == b"", "the one that has waited longest is closed"
        for _, writer in idle:
            writer.close()


async def test_connections_in_a_request_are_not_closed_for_others() -> None:
    limits = Limits(connections=2, handshake=LONG, header=LONG, idle=LONG, body=LONG)
    async with serving(limits) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEADER % len(REQUEST) + b"Expect: 100-continue\r\n\r\n")
        async with asyncio.timeout(budget()):
            assert b"100" in await reader.readline()
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        assert await answered(port) == 200
        writer.write(REQUEST)
        async with asyncio.timeout(budget()):
            await reader.readline()
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for _, one in [*others, (reader, writer)]:
            one.close()
