"""A server that lies to scheduler and dispatcher: each request gets each lie, and afterwards everything works again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.faults.proxy import LIES, Request
from tests.faults.scheduling import Cluster, cluster, pod, running, until
from volcano_py.api.kinds import COMPOSITE_PODGROUP, POD
from volcano_py.kube import definitions
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer
from volcano_py.scheduler.cache.kinds import watched
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.model.plan import Bind, Event, Evict, PodCondition
from volcano_py.scheduler.runtime.server import Scheduler

LISTED = [entry.plural for entry in watched(DEFAULT_GATES)]
WATCHED = [entry.plural for entry in watched(DEFAULT_GATES) if entry.rt != COMPOSITE_PODGROUP]
"""The cluster of these tests is 1.36, which does not serve that kind."""
COMPARED = {entry.rt.api_version for entry in watched(DEFAULT_GATES) if entry.rt.group.endswith("volcano.sh")}
"""The API groups whose CRDs are compared with what the programs use."""
REQUESTS: set[Request] = {
    *(("LIST", plural, "", False) for plural in LISTED),
    *(("GET", plural, "", True) for plural in WATCHED),
    *(("GET", f"{before}/apis/{version}", "", False) for before in ("", "/openapi/v3") for version in COMPARED),
    ("GET", f"/apis/{COMPOSITE_PODGROUP.group}", "", False),
    ("GET", "queues", "", False),
    ("POST", "queues", "", False),
    ("POST", "pods", "binding", False),
    ("GET", "pods", "", False),
    ("PATCH", "pods", "status", False),
    ("DELETE", "pods", "", False),
    ("PATCH", "podgroups", "", False),
    ("PATCH", "queues", "status", False),
    ("POST", "events", "", False),
    ("PATCH", "events", "", False),
    ("POST", "leases", "", False),
    ("GET", "leases", "", False),
    ("PUT", "leases", "", False),
}
"""Every kind of request that scheduler and dispatcher make."""
GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
QUICK = {"leader_elect": True, "lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.3}


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the decider's requests and watches, so that silence costs seconds; the dispatcher's follow its options."""
    for made, name, seconds in ((Client, "timeout", 1.0), (Informer, "inactivity", 1.5)):
        defaults = made.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, name, seconds)
    monkeypatch.setattr(definitions, "LOOK", 2.0)


class Provoking:
    """Makes scheduler and dispatcher send every kind of request again and again."""

    def __init__(self, c: Cluster, scheduler: Scheduler) -> None:
        self._c = c
        self._scheduler = scheduler
        self._rounds = 0

    async def round(self) -> None:
        """Let the watches list again, submit a gang, and hand the dispatcher what no cycle would decide here."""
        await self._c.open_queues()
        if self._rounds % 4 == 0:
            for plural in WATCHED:
                self._c.proxy.send(plural, GONE)
        name = f"gang-{self._rounds}"
        await self._c.submit(name)
        victim = await self._c.client.create(
            POD, pod(f"victim-{self._rounds}", "victims") | {"spec": _bound_to("node-0")}
        )
        uid = victim["metadata"]["uid"]
        here = ("default", victim["metadata"]["name"], uid)
        if self._scheduler.handle.leading:
            self._scheduler.handle.emit(
                [
                    # The pod is on that node already: after the Conflict the dispatcher reads the pod.
                    Bind(*here, "node-0", "default/victims"),
                    PodCondition(*here, "Unschedulable", "no room"),
                    Evict(*here, "default/victims", "test"),
                    # The same again and again becomes a count on the first Event.
                    Event("Node", "", "node-0", "", "Warning", "Test", "the same again"),
                ]
            )
        self._rounds += 1


def _bound_to(node: str) -> dict[str, object]:
    return {"nodeName": node, "schedulerName": "volcano", "containers": [{"name": "c", "image": "x"}]}


@pytest.mark.slow
async def test_everything_works_again_after_each_lie(tmp_path: Path) -> None:
    # Most of the time is spent waiting, so several clusters share it.
    async with asyncio.TaskGroup() as group:
        for lie in LIES:
            folder = tmp_path / lie
            folder.mkdir()
            group.create_task(lie_and_recover(folder, lie))


async def lie_and_recover(tmp_path: Path, lie: str) -> None:
    async with cluster(tmp_path, queues=False) as c:
        for request in REQUESTS:
            c.proxy.lie(request, lie)
        opening = asyncio.create_task(until(c.open_queues, "the queues are not made", 30))
        async with running(c.options(**QUICK)) as scheduler:
            await opening
            provoking = Provoking(c, scheduler)

            async def all_sent() -> bool:
                await provoking.round()
                await asyncio.sleep(0.2)
                return not c.proxy.lies_left()

            try:
                await until(all_sent, "", 240)
            except AssertionError:
                left = REQUESTS - {request for request, _ in c.proxy.lied}
                raise AssertionError(f"not provoked: {left}") from None
            assert set(c.proxy.seen) == REQUESTS, set(c.proxy.seen) ^ REQUESTS
            c.proxy.be_honest()
            await c.submit("after")
            await c.scheduled("after", seconds=60)

            async def healthy() -> bool:
                return scheduler.health.answer() == (True, "ok")

            await until(healthy, f"/healthz: {scheduler.health.answer(True)[1]}", 60)
            assert scheduler.handle.restarts == 0
