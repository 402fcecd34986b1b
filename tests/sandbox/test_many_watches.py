"""Ten thousand open watches: all are served, and neither time nor memory runs away."""

from __future__ import annotations

import asyncio
import base64
import os
import resource
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests import waiting

WATCHES = 10_000
FILES = WATCHES + 500
MOST_MEMORY = 1000 * 1024  # KiB
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def many_files() -> None:
    """As many open files as the watches need, on our side."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < FILES:
        pytest.skip(f"{FILES} open files are needed, and {hard} allowed")
    if soft < FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))


@asynccontextmanager
async def sandbox(folder: Path) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """A sandbox in a process of its own: (pid, kubeconfig)."""
    path = folder / "kubeconfig"
    command = ("-m", "volcano_py.cli.main", "sandbox", "up", "--nodes", "0", "--components", "none")
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, "--kubeconfig", str(path), stdout=log, stderr=log
        )
    try:
        async with waiting.limit("the sandbox is not up"):
            while b"is up" not in (folder / "log").read_bytes():
                assert process.returncode is None, (folder / "log").read_text()
                await asyncio.sleep(0.05)
        yield process.pid, yaml.safe_load(path.read_text())
    finally:
        process.terminate()
        await process.wait()


def memory(pid: int) -> int:
    """Resident KiB of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(pid)


class Caller:
    """Raw requests, which cost the tests' process little."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        cluster = configuration["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        self.address = (url.hostname, url.port)
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=authority)
        self.token = configuration["users"][0]["user"]["token"]

    async def send(self, method: str, path: str, body: bytes = b"") -> Stream:
        """A connection with a request on it."""
        reader, writer = await asyncio.open_connection(*self.address, ssl=self.context, limit=4096)
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    async def seconds(self, method: str, path: str, body: bytes = b"") -> float:
        """How long a request takes that must succeed."""
        begun = time.monotonic()
        reader, writer = await self.send(method, path, body)
        status = await reader.readline()
        writer.transport.abort()
        assert b" 20" in status, status
        return time.monotonic() - begun


CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="memory is read from /proc")
async def test_ten_thousand_watches(tmp_path: Path, many_files: None) -> None:
    async with sandbox(tmp_path) as (pid, configuration):
        caller = Caller(configuration)
        before = memory(pid)
        streams: list[Stream] = []
        gate = asyncio.Semaphore(50)

        async def open_one(number: int) -> None:
            async with gate:
                # each has a selection of its own, so that nothing is shared but what must be
                path = f"{CONFIGMAPS}?watch=true&resourceVersion=0&labelSelector=for%3Dall%2Conly%21%3D{number}"
                reader, writer = await caller.send("GET", path)
                assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
                streams.append((reader, writer))

        await asyncio.gather(*(open_one(number) for number in range(WATCHES)))
        held = memory(pid)
        assert await caller.seconds("GET", "/api/v1/namespaces") < 1
        body = b'{"metadata":{"name":"all","labels":{"for":"all"}},"data":{"a":"b"}}'
        begun = time.monotonic()
        assert await caller.seconds("POST", CONFIGMAPS, body) < 5
        for reader, _ in streams:
            assert b'"name":"all"' in await waiting.within(reader.readuntil(b"}}\n"), "a watch got no event")
        delivered = time.monotonic() - begun
        for _, writer in streams:
            writer.transport.abort()
        streams.clear()
        async with waiting.limit("the server is still slow"):
            while await caller.seconds("GET", "/api/v1/namespaces") > 0.5:
                await asyncio.sleep(0.2)
        print(f"{WATCHES} watches: {(held - before) / WATCHES:.0f} KiB each; one event to all in {delivered:.1f} s")
        assert held < MOST_MEMORY
        assert memory(pid) < 1.1 * held
