"""The API server is gone for a while: back-off, then on; nothing is lost, nothing bound twice, no gang in part."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import ssl
import sys
from pathlib import Path

import pytest

from tests.e2e.cluster import cluster, job, log_of, until
from tests.e2e.journal import Journal, api_agrees, journal
from volcano_py.api.kinds import JOB, QUEUE
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Unreachable
from volcano_py.sandbox.apiserver.http.server import Server

GANGS, MEMBERS, NODES, CPUS = 20, 8, 10, 20
AWAY = 4.0
"""Seconds."""


async def submit(client: Client, first: int, last: int) -> None:
    """Create the gangs; while the server is away, again and again."""
    for i in range(first, last):
        while True:
            try:
                await client.create(JOB, job(f"gang-{i}", MEMBERS, "1", seconds=3600), "default")
                break
            except AlreadyExists:
                break
            except Unreachable:
                await asyncio.sleep(0.2)


async def bound(kept: Journal, pods: int) -> bool:
    return len(kept.node_of) >= pods


async def all_is_well(client: Client, kept: Journal) -> None:
    async def all_bound() -> bool:
        return len(kept.node_of) >= GANGS * MEMBERS

    await until(all_bound, f"only {len(kept.node_of)} pods are bound", 60)
    await asyncio.sleep(1)
    assert kept.wrong == []
    assert {kept.bound_of(f"gang-{i}") for i in range(GANGS)} == {MEMBERS}
    await api_agrees(client, kept)


@pytest.mark.slow
async def test_it_stands_still(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    up = [sys.executable, "-m", "volcano_py.cli.main", "sandbox", "up", "--kubeconfig", str(kubeconfig)]
    server = await asyncio.create_subprocess_exec(
        *up, "--nodes", str(NODES), "--node-shape", f"cpu={CPUS},memory=256Gi", stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        assert b"The sandbox is up" in await server.stdout.readline()
        async with Client.from_kubeconfig(str(kubeconfig)) as client, journal(client, CPUS) as kept:

            async def is_open() -> bool:
                return ((await client.get(QUEUE, "default")).get("status") or {}).get("state") == "Open"

            await until(is_open, "the default queue is not opened")
            await submit(client, 0, GANGS // 2)
            await until(lambda: bound(kept, MEMBERS), "nothing is bound", 60)
            os.kill(server.pid, signal.SIGSTOP)
            late = asyncio.create_task(submit(client, GANGS // 2, GANGS))
            await asyncio.sleep(AWAY)
            os.kill(server.pid, signal.SIGCONT)
            await late
            await all_is_well(client, kept)
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.terminate()
        await server.wait()


@pytest.mark.slow
async def test_it_is_restarted_on_its_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[ssl.SSLContext | None] = []
    start = Server.start

    async def remembering(self: Server, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        used.append(tls)
        await start(self, host, port, tls)

    monkeypatch.setattr(Server, "start", remembering)
    async with (
        cluster(tmp_path, nodes=NODES, shape=f"cpu={CPUS},memory=256Gi") as (sandbox, client),
        journal(client, CPUS) as kept,
    ):
        in_flight: list[int] = []
        submitted = asyncio.create_task(submit(client, 0, GANGS))
        for pods in (MEMBERS, GANGS * MEMBERS // 2):
            await until(lambda: bound(kept, pods), f"{pods} pods are not bound", 60)  # noqa: B023
            in_flight.append(len(kept.name_of) - len(kept.node_of))
            port = sandbox.server.port
            await sandbox.server.stop()
            await asyncio.sleep(AWAY)
            await sandbox.server.start("127.0.0.1", port, used[0])
        await submitted
        await all_is_well(client, kept)
        assert max(in_flight) > 0, "no outage came while pods were being bound"
        for component in ("scheduler", "controller-manager"):
            log = log_of(sandbox, component)
            assert "Traceback" not in log
            complaints = [line for line in log.splitlines() if re.search(r"Cannot connect|refused|closed", line)]
            # two outages, a dozen watches: told, not repeated for every object that waits
            assert len(complaints) < 80, f"{component} says {len(complaints)} times that the server is away"
