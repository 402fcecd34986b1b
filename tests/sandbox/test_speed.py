"""Requests of the sandbox's API server per second of its processor time, over TLS. The target is 1,200 creations and
2,000 bindings a second; the limits leave room for a slower processor, and other load does not count."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests import waiting

PODS = 4000
IN_FLIGHT = 64


@pytest.mark.slow
async def test_creations_and_bindings(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    arguments = ("sandbox", "up", "--nodes", "1000", "--components", "none", "--kubeconfig", str(path))
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "volcano_py.cli.main", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        await waiting.within(server.stdout.readline(), "the sandbox is not up")
        cluster = yaml.safe_load(path.read_text())
        url = cluster["clusters"][0]["cluster"]["server"]
        authority = base64.b64decode(cluster["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        headers = {
            "Authorization": f"Bearer {cluster['users'][0]['user']['token']}",
            "Content-Type": "application/json",
        }
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority), limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

            async def post(target: str, body: dict) -> None:
                async with session.post(url + target, data=json.dumps(body)) as answer:
                    await answer.read()
                    assert answer.status == 201

            async def create(index: int) -> None:
                resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
                container = {"name": "c", "image": "busybox:1", "resources": resources}
                body = {"metadata": {"name": f"p{index}", "labels": {"job": "j"}}, "spec": {"containers": [container]}}
                await post("/api/v1/namespaces/default/pods", body)

            async def bind(index: int) -> None:
                body = {"metadata": {"name": f"p{index}"}, "target": {"name": f"node-{index % 1000:03d}"}}
                await post(f"/api/v1/namespaces/default/pods/p{index}/binding", body)

            created, bound = await rate(server.pid, create), await rate(server.pid, bind)
        pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
        print(f"{created:.0f} creations and {bound:.0f} bindings per processor second, {pages * 4 // 1024} MiB")
        assert created > 600 and bound > 1000
        assert pages * 4096 < 2**30
    finally:
        server.terminate()
        await server.wait()


async def rate(pid: int, work: Callable[[int], Awaitable[None]]) -> float:
    """Calls of `work` per second of the process's processor time."""
    numbers = iter(range(PODS))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    before = processor_seconds(pid)
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return PODS / (processor_seconds(pid) - before)


def processor_seconds(pid: int) -> float:
    """User and system time of a process, in seconds (proc(5): fields 14 and 15 of `stat`)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
