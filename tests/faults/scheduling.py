"""A scheduler in this process, with its dispatcher process, behind a proxy in front of a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import waiting
from tests.faults.proxy import LyingProxy
from volcano_py.api.kinds import EVENT, POD, PODGROUP, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.runtime.server import Scheduler

Manifest = dict[str, Any]


def pod(name: str, group: str, uid: str = "") -> Manifest:
    """A pod of 1 cpu that belongs to a PodGroup."""
    metadata = {
        "name": name,
        "namespace": "default",
        "annotations": {"scheduling.k8s.io/group-name": group},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | ({"uid": uid} if uid else {}),
        "spec": {"schedulerName": "volcano", "containers": [container]},
        "status": {"phase": "Pending"},
    }


def pod_group(name: str, size: int) -> Manifest:
    """A PodGroup of the default queue."""
    return {
        "apiVersion": PODGROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": size, "queue": "default"},
        "status": {"phase": "Pending"},
    }


async def until(holds: Callable[[], Awaitable[Any] | Any], otherwise: str, seconds: float = 0.0) -> Any:
    """Wait for something to become true; returns it. `seconds` is for what may take longer than one budget."""
    seconds = max(seconds, waiting.budget())
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{otherwise} after {seconds} s")
        await asyncio.sleep(0.02)


@dataclass
class Cluster:
    """An API server with nodes, the proxy before it, and a client that goes past the proxy."""

    sandbox: Sandbox
    proxy: LyingProxy
    client: Client
    folder: Path

    def options(self, proxy: LyingProxy | None = None, **options: Any) -> Options:
        """Options of a scheduler that reaches the server through the proxy."""
        chosen = proxy or self.proxy
        path = chosen.write_kubeconfig(self.folder / f"through-{chosen.port}", self.sandbox.token)
        return Options(**{"leader_elect": False, "schedule_period": 0.2, "kubeconfig": path, **options})

    async def submit(self, name: str, size: int = 2) -> None:
        """Create a gang."""
        await self.client.create(PODGROUP, pod_group(name, size))
        for i in range(size):
            await self.client.create(POD, pod(f"{name}-{i}", name))

    async def nodes_of(self, name: str) -> list[str]:
        """The nodes of the gang's pods that are bound."""
        pods = await self.client.list(POD, "default")
        named = [p for p in pods if p["metadata"]["name"].rpartition("-")[0] == name]
        return [p["spec"]["nodeName"] for p in named if p["spec"].get("nodeName")]

    async def scheduled(self, name: str, size: int = 2, seconds: float = 0.0) -> None:
        """Wait until a gang is bound."""

        async def all_bound() -> bool:
            return len(await self.nodes_of(name)) == size

        await until(all_bound, f"gang {name} is not bound", seconds)

    async def open_queues(self) -> bool:
        """Do what the queue controller would; whether both are there."""
        queues = list(await self.client.list(QUEUE))
        for queue in queues:
            if (queue.get("status") or {}).get("state") != "Open":
                await self.client.patch(
                    QUEUE, queue["metadata"]["name"], {"status": {"state": "Open"}}, subresource="status"
                )
        return len(queues) == 2

    async def quarantine_events(self) -> list[tuple[str, str, int]]:
        """Kind, name and count of the objects that were reported."""
        return [
            (e["involvedObject"]["kind"], e["involvedObject"]["name"], e.get("count", 1))
            for e in await self.client.list(EVENT)
            if e["reason"] == "Quarantined"
        ]


@contextlib.asynccontextmanager
async def cluster(folder: Path, nodes: int = 2, *, tls: bool = False, queues: bool = True) -> AsyncIterator[Cluster]:
    """A cluster without any controllers; `queues`: whether the first queues are there."""
    async with (
        Sandbox(
            nodes,
            node_shapes=[parse("cpu=64,memory=256Gi")],
            controllers=None,
            first_queues=queues,
            feature_gates="GenericWorkload=true",
            path=folder / "kubeconfig",
        ) as sandbox,
        LyingProxy(sandbox.url, sandbox.authority, tls=tls) as proxy,
        Client.from_kubeconfig(sandbox.kubeconfig, timeout=60.0) as client,
    ):
        yield Cluster(sandbox, proxy, client, folder)


@contextlib.asynccontextmanager
async def launched(options: Options) -> AsyncIterator[Scheduler]:
    """A scheduler that has its first picture."""
    scheduler = Scheduler(options)
    task = asyncio.create_task(scheduler.run(), name="scheduler")

    def ready() -> bool:
        if task.done():
            task.result()
        return scheduler.cache.ready.is_set()

    try:
        await until(ready, "the first lists are not complete", 30)
        yield scheduler
        assert not task.done(), task
    finally:
        task.cancel()
        _, left = await asyncio.wait([task], timeout=waiting.budget())
        assert not left, "the scheduler does not end"


@contextlib.asynccontextmanager
async def running(options: Options) -> AsyncIterator[Scheduler]:
    """A scheduler that has its first picture and leads."""
    async with launched(options) as scheduler:
        await until(lambda: scheduler.handle.leading, "the scheduler does not lead", 30)
        yield scheduler
