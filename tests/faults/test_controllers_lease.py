"""The Lease of the controllers: kept under a load of throttled writes, and nothing is written without it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.controllers.small_api import SmallApi
from tests.controllers.world import job, queue, task
from tests.faults.controlling import until
from tests.waiting import budget
from volcano_py.api import kinds
from volcano_py.controllers import manager
from volcano_py.controllers.executor import AT_ONCE, NotLeading
from volcano_py.controllers.options import Options
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.leader import LeaderElection
from volcano_py.kube.ratelimit import TokenBucket

NAME = "vc-controller-manager"
PODS = 200
QPS = 10.0


@contextlib.asynccontextmanager
async def throttled() -> AsyncIterator[tuple[SmallApi, asyncio.Task[None]]]:
    """A controller-manager that makes 200 pods, ten writes a second, and has to renew its Lease every 1.5 seconds."""
    api = await SmallApi().start()
    for name in ("root", "default"):
        api.put(queue(name))
    options = Options(
        kube_api_qps=QPS,
        kube_api_burst=10,
        watch_with_kopf=False,
        leader_elect_lease_duration=2.0,
        leader_elect_renew_deadline=1.5,
        leader_elect_retry_period=0.2,
    )
    async with Client(Credentials(server=api.url)) as client:
        running = asyncio.create_task(manager.run(client, options))
        api.put(job(task(replicas=PODS)))
        await until(lambda: api.all(kinds.PODGROUP), lambda: "there is no PodGroup")
        name = api.all(kinds.PODGROUP)[0]["metadata"]["name"]
        api.change(kinds.PODGROUP, name, {"status": {"phase": "Inqueue"}})
        await until(lambda: len(api.all(kinds.POD)) >= 3, lambda: "no pods are made")
        try:
            yield api, running
        finally:
            running.cancel()
            await asyncio.wait([running])
            await api.stop()


async def test_a_queue_of_throttled_writes_does_not_cost_the_lease() -> None:
    async with throttled() as (api, running):
        holder = api.get(kinds.LEASE, NAME, "volcano-system")["spec"]["holderIdentity"]
        await asyncio.sleep(3.0)  # twice the renew deadline
        assert not running.done() and len(api.all(kinds.POD)) < PODS
        assert api.get(kinds.LEASE, NAME, "volcano-system")["spec"]["holderIdentity"] == holder


async def test_writes_that_wait_for_the_throttle_are_not_sent_without_the_lease() -> None:
    async with throttled() as (api, running):
        thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 100}}
        api.change(kinds.LEASE, NAME, thief, "volcano-system")
        with pytest.raises(NotLeading):
            await asyncio.wait_for(running, budget())
        written = len(api.writes)
        assert len(api.all(kinds.POD)) < PODS
        await asyncio.sleep(0.5)
        assert len(api.writes) == written


async def test_the_gate_is_asked_again_when_a_write_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Lease runs out while writes wait for the throttle, and no task has noticed yet."""
    flow = asyncio.Event()
    waiting = 0

    async def acquire(bucket: TokenBucket) -> None:
        nonlocal waiting
        if bucket._qps == QPS:  # not that of the election
            waiting += 1
            await flow.wait()

    async with throttled() as (api, running):
        monkeypatch.setattr(TokenBucket, "acquire", acquire)
        await until(lambda: waiting >= AT_ONCE, lambda: f"only {waiting} writes wait")
        pods = len(api.all(kinds.POD))
        monkeypatch.setattr(LeaderElection, "holds", lambda election: False)
        flow.set()
        with pytest.raises(NotLeading):
            await asyncio.wait_for(running, budget())
        assert len(api.all(kinds.POD)) == pods
