"""A sandbox to be measured: started in a process of its own, called over TLS, its memory read from /proc."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import click
import orjson

from volcano_py.api.kinds import JOB, NODE, POD
from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError

SHAPE = "cpu=32,memory=256Gi"
LANES = 64
"""Requests under way at a time."""
START_SECONDS = 120.0
GANG = 100

Manifest = dict[str, Any]


class Cluster:
    """`pid` is the server's; its components are its children. `folder` is for whatever a benchmark writes."""

    def __init__(self, pid: int, client: Client, folder: Path) -> None:
        self.pid = pid
        self.client = client
        self.folder = folder

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def memory(self) -> float:
        """MiB of the server alone."""
        return resident(self.pid)

    def altogether(self) -> float:
        """MiB of the server and all that it has started."""
        return sum(resident(pid) for pid in [self.pid, *descendants(self.pid)])


@contextlib.asynccontextmanager
async def cluster(nodes: int, components: str, *more: str) -> AsyncIterator[Cluster]:
    """A sandbox that answers, with all of its nodes Ready; FOLDER in further arguments is a folder for it."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        up = [sys.executable, "-m", "volcano_py.cli.main", "sandbox", "up", "--kubeconfig", str(kubeconfig)]
        server = await asyncio.create_subprocess_exec(
            *up,
            *("--nodes", str(nodes), "--node-shape", SHAPE, "--components", components),
            *(argument.replace("FOLDER", folder) for argument in more),
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            async with await _connected(kubeconfig, server, nodes) as client:
                yield Cluster(server.pid, client, Path(folder))
        finally:
            with contextlib.suppress(ProcessLookupError):
                server.send_signal(signal.SIGTERM)
            await server.wait()


async def _connected(kubeconfig: Path, server: asyncio.subprocess.Process, nodes: int) -> Client:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.returncode is not None:
            raise click.ClickException("the sandbox did not start; its error is above")
        with contextlib.suppress(KubeError):
            client = Client.from_kubeconfig(kubeconfig, lean=True, connections=LANES)
            found = await client.list(NODE)
            if len(found) == nodes and all(_is_ready(node) for node in found):
                return client
            await client.close()
        await asyncio.sleep(0.02)
    raise click.ClickException(f"the sandbox is not ready after {START_SECONDS:.0f} s")


def _is_ready(node: Manifest) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def resident(pid: int) -> float:
    """MiB of memory of one process; pages it shares with others count in part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise click.ClickException("the kernel does not report a process's memory (/proc/PID/smaps_rollup)")


def cpu_seconds(pid: int) -> float:
    """What a process has used, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def at_rest(*pids: int) -> None:
    """Wait until programs have listed all objects, and have loaded what they load after their start."""
    used = -1.0
    while (now := sum(map(cpu_seconds, pids))) - used > 0.06:
        used = now
        await asyncio.sleep(3)


def descendants(pid: int) -> Iterator[int]:
    """All processes below one."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            yield child
            yield from descendants(child)


# ---- what is sent to it


def pod(i: int) -> Manifest:
    """A pod as users write it; its scheduler is not running."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{i:05d}", "namespace": "default", "labels": {"app": f"bench-{i % 100}"}},
        "spec": {
            "schedulerName": "none",
            "containers": [
                {
                    "name": "main",
                    "image": "busybox",
                    "command": ["sleep", "infinity"],
                    "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                }
            ],
            "restartPolicy": "Never",
        },
    }


def gang(i: int) -> Manifest:
    template = {"spec": {k: v for k, v in pod(0)["spec"].items() if k != "schedulerName"}}
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": f"gang-{i:04d}", "namespace": "default"},
        "spec": {
            "minAvailable": GANG,
            "schedulerName": "volcano",
            "tasks": [{"name": "main", "replicas": GANG, "template": template}],
        },
    }


async def rate(count: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Calls a second, `LANES` at a time."""
    numbers = iter(range(count))

    async def lane() -> None:
        for i in numbers:
            await call(i)

    begun = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(LANES)))
    return count / (time.perf_counter() - begun)


async def until_running(client: Client, pods: int) -> None:
    """Wait for so many pods that run."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        answer = orjson.loads(
            await client.raw("GET", POD.path(None), params={"fieldSelector": "status.phase=Running", "limit": 1})
        )
        left = (answer.get("metadata") or {}).get("remainingItemCount")
        running = len(answer.get("items") or ()) + (left or 0)
        if left is None and running:
            pages = client.pages(POD, None, field_selector="status.phase=Running")
            running = sum([len(page) async for page in pages])
        if running >= pods:
            return
        await asyncio.sleep(1)
    raise click.ClickException(f"only {running} of {pods} pods run after 600 s")
