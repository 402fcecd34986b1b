"""Two replicas: once the second one has the Lease, the server carries out no write of the first one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.proxy import LyingProxy, Request
from tests.faults.scheduling import Cluster, cluster, launched, pod, until
from volcano_py.api.kinds import POD
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.runtime.server import Scheduler

LEASES = {"leader_elect": True, "lease_duration": 2.0, "renew_deadline": 1.6, "retry_period": 0.2}
BINDING: Request = ("POST", "pods", "binding", False)
RENEWAL: Request = ("PUT", "leases", "", False)
PODS = 100


@dataclass
class Replicas:
    """The leading scheduler, the other one, and what the first one was given to bind."""

    c: Cluster
    old: Scheduler
    new: Scheduler
    old_proxy: LyingProxy
    new_proxy: LyingProxy
    binds: list[Bind]

    async def taken_over(self) -> float:
        """Wait until the second one leads; when the server got its write of the Lease."""
        await until(lambda: self.new.handle.leading, "the second replica does not take over")
        return next(at for at, request in self.new_proxy.writes if request == RENEWAL)

    def late_writes(self, takeover: float) -> list[Request]:
        """What the first one had carried out after the takeover."""
        return [request for at, request in self.old_proxy.writes if at >= takeover]

    async def bind_slowly(self) -> None:
        """Give the first one all binds, one by one."""
        for bind in self.binds:
            self.old.handle.emit([bind])
            await asyncio.sleep(0.03)

    async def works(self) -> None:
        """The second one schedules, and the first one has given up its work."""
        await self.c.submit("after")
        await self.c.scheduled("after")
        await until(lambda: not self.old.handle.leading and not self.old.handle.unanswered, "it does not give up")


@contextlib.asynccontextmanager
async def replicas(folder: Path, *, tls: bool = False) -> AsyncIterator[Replicas]:
    """Two schedulers with a proxy each, of which the first one leads."""
    async with (
        cluster(folder, tls=tls) as c,
        LyingProxy(c.sandbox.url, c.sandbox.authority) as second,
        launched(c.options(**LEASES)) as old,
    ):
        await until(lambda: old.handle.leading, "the first replica does not lead")
        binds = []
        for i in range(PODS):
            made = await c.client.create(POD, pod(f"p-{i}", "nothing-decides-these"))
            binds.append(Bind("default", f"p-{i}", made["metadata"]["uid"], "node-0", "default/nothing"))
        async with launched(c.options(second, **LEASES)) as new:
            yield Replicas(c, old, new, c.proxy, second, binds)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before the connection", "between two writes"])
async def test_a_leader_that_is_stopped_between_gate_and_write(tmp_path: Path, where: str) -> None:
    async with replicas(tmp_path, tls=where == "before the connection") as r:
        pid = r.old.handle.pid
        if where == "before the connection":
            # The gate has been passed, and the request waits for its TLS handshake.
            r.old_proxy.hold()
            r.old.handle.emit(r.binds)
            await until(lambda: r.old_proxy.held > 2, "no connection is opened")
        else:
            r.old.handle.emit(r.binds)
            await until(lambda: r.old_proxy.carried_out[BINDING], "nothing is bound")
        os.kill(pid, signal.SIGSTOP)
        try:
            takeover = await r.taken_over()
            r.old_proxy.be_honest()
        finally:
            os.kill(pid, signal.SIGCONT)
        await r.works()
        assert r.late_writes(takeover) == []
        assert r.old_proxy.carried_out[BINDING] < PODS


@pytest.mark.slow
async def test_a_leader_whose_connections_stall(tmp_path: Path) -> None:
    async with replicas(tmp_path) as r:
        r.old_proxy.stall()
        # One after the other, so that the youngest began just before the Lease ran out.
        binding = asyncio.create_task(r.bind_slowly())
        await until(lambda: r.old_proxy.stalled > 20, "nothing is on its way")
        takeover = await r.taken_over()
        r.old_proxy.flow()
        await binding
        await r.works()
        assert r.late_writes(takeover) == []
        assert r.old_proxy.dropped[BINDING] > 0 and r.old_proxy.carried_out[BINDING] == 0


@pytest.mark.slow
async def test_a_leader_whose_lease_is_throttled(tmp_path: Path) -> None:
    async with replicas(tmp_path) as r:
        r.old_proxy.throttle(RENEWAL, ("GET", "leases", "", False))
        binding = asyncio.create_task(r.bind_slowly())
        takeover = await r.taken_over()
        await binding
        r.old_proxy.be_honest()
        await r.works()
        assert r.old_proxy.refused[RENEWAL] > 0
        assert 0 < r.old_proxy.carried_out[BINDING] < PODS
        assert r.late_writes(takeover) == []
