"""Two controller-managers: once the second one has the Lease, the server carries out no write of the first one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.controlling import Cluster, cluster, job_spec, manifest, pod_spec, until
from tests.faults.proxy import LyingProxy, Request
from tests.waiting import budget
from volcano_py.api import kinds

FLAGS = (
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=200ms",
    "--kube-api-qps=15",
    "--kube-api-burst=1",
    "--watch-with-kopf=false",
)
CREATION: Request = ("POST", "pods", "", False)
RENEWAL: Request = ("PUT", "leases", "", False)
PODS = 150


@dataclass
class Replicas:
    """The leading controller-manager as a process, and another one that waits for the Lease."""

    c: Cluster
    old: asyncio.subprocess.Process
    old_proxy: LyingProxy
    new_proxy: LyingProxy
    new: asyncio.subprocess.Process | None = None

    async def taken_over(self) -> float:
        """When the server got the second one's write of the Lease."""

        def acquired() -> float | None:
            return next((at for at, request in self.new_proxy.writes if request == RENEWAL), None)

        at: float = await until(acquired, lambda: "the second replica does not take over")
        return at

    def late_writes(self, takeover: float) -> Counter[Request]:
        """What the first one had carried out after the takeover."""
        return Counter(request for at, request in self.old_proxy.writes if at >= takeover)

    async def ended(self) -> None:
        """The first one ends, because it has lost its Lease."""
        await asyncio.wait_for(self.old.wait(), budget())
        assert self.old.returncode

    async def works(self) -> None:
        """The second one continues, or the next one if a busy machine costs it the Lease: all pods are created."""
        pods = 0

        async def created() -> bool:
            nonlocal pods
            if self.new is None or self.new.returncode is not None:
                self.new = await start(self.c.folder, "new", self.c, self.new_proxy)
            pods = len(await self.c.client.list(kinds.POD, "default"))
            return pods == PODS

        await until(created, lambda: f"{pods} pods; {(self.c.folder / 'new.log').read_text()}", 60)


async def start(folder: Path, name: str, c: Cluster, proxy: LyingProxy) -> asyncio.subprocess.Process:
    """A controller-manager that reaches the server through a proxy."""
    kubeconfig = proxy.write_kubeconfig(folder / name, c.sandbox.token)
    with (folder / f"{name}.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "volcano_py.cli.main", "controller-manager", "--kubeconfig", kubeconfig, *FLAGS),
            stdout=log,
            stderr=log,
        )


@contextlib.asynccontextmanager
async def replicas(folder: Path, *, tls: bool = False) -> AsyncIterator[Replicas]:
    """The first one leads and creates the pods of a large Job, 15 requests a second."""
    async with (
        cluster(folder) as c,
        LyingProxy(c.sandbox.url, c.sandbox.authority, tls=tls) as first,
        LyingProxy(c.sandbox.url, c.sandbox.authority) as second,
    ):
        r = Replicas(c, await start(folder, "old", c, first), first, second)
        try:
            await until(lambda: first.carried_out[RENEWAL], lambda: (folder / "old.log").read_text())
            r.new = await start(folder, "new", c, second)
            template = {"name": "work", "replicas": PODS, "template": {"spec": pod_spec()}}
            await c.client.create(kinds.JOB, manifest(kinds.JOB, "large", spec=job_spec(tasks=[template])))
            groups = await until(lambda: c.client.list(kinds.PODGROUP, "default"), lambda: "there is no PodGroup")
            name = groups[0]["metadata"]["name"]
            await c.client.patch(kinds.PODGROUP, name, {"status": {"phase": "Inqueue"}}, "default")
            await until(lambda: first.carried_out[CREATION] >= 3, lambda: "no pods are created")
            yield r
        finally:
            for process in (r.old, r.new):
                if process is not None and process.returncode is None:
                    process.kill()
                    await process.wait()


@pytest.mark.slow
async def test_a_leader_that_is_stopped_between_two_writes(tmp_path: Path) -> None:
    async with replicas(tmp_path) as r:
        os.kill(r.old.pid, signal.SIGSTOP)
        try:
            takeover = await r.taken_over()
        finally:
            os.kill(r.old.pid, signal.SIGCONT)
        await r.ended()
        await r.works()
        assert not r.late_writes(takeover)
        assert 0 < r.old_proxy.carried_out[CREATION] < PODS


@pytest.mark.slow
async def test_a_leader_that_is_stopped_before_the_connection(tmp_path: Path) -> None:
    """The gate has been passed, and the requests wait for their TLS handshakes."""
    async with replicas(tmp_path, tls=True) as r:
        r.old_proxy.hold()
        await until(lambda: r.old_proxy.held > 2, lambda: "no connection is opened")
        os.kill(r.old.pid, signal.SIGSTOP)
        try:
            takeover = await r.taken_over()
            r.old_proxy.be_honest()
        finally:
            os.kill(r.old.pid, signal.SIGCONT)
        await r.ended()
        await r.works()
        assert not r.late_writes(takeover)


@pytest.mark.slow
async def test_a_leader_whose_connections_stall(tmp_path: Path) -> None:
    async with replicas(tmp_path) as r:
        r.old_proxy.stall()
        await until(lambda: r.old_proxy.stalled > 5, lambda: "nothing is on its way")
        takeover = await r.taken_over()
        await r.ended()
        r.old_proxy.flow()
        await r.works()
        assert not r.late_writes(takeover)
        assert r.old_proxy.dropped[CREATION] > 0


@pytest.mark.slow
async def test_a_leader_whose_lease_is_throttled(tmp_path: Path) -> None:
    async with replicas(tmp_path) as r:
        r.old_proxy.throttle(RENEWAL, ("GET", "leases", "", False))
        takeover = await r.taken_over()
        await r.ended()
        await r.works()
        assert r.old_proxy.refused[RENEWAL] > 0
        assert not r.late_writes(takeover)
