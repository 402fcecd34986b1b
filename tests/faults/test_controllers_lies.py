"""A server that lies to controller-manager, HyperNode controller and webhook-manager.

Each kind of request gets each lie. Once the server is honest again all work is done within a minute and /healthz is ok.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.controlling import (
    Cluster,
    Component,
    ControllerWork,
    HyperNodeWork,
    WebhookWork,
    Work,
    cluster,
    until,
)
from tests.faults.proxy import LIES, Request
from volcano_py.controllers import kopf_thread, kopf_watch
from volcano_py.controllers.executor import NotLeading
from volcano_py.kube import definitions
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer
from volcano_py.webhooks import manager as webhooks

GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
LEASE = {"leader_elect_lease_duration": 8.0, "leader_elect_renew_deadline": 5.0}
"""Two dozen API servers and components share a processor here."""
PAUSE = 0.5
"""Seconds between two looks of one cluster: most of the time is spent waiting, and many share a processor."""
Make = Callable[[Cluster], tuple[Component, Callable[[int], Work]]]
ONCE = ("PATCH", "events", "", False)
"""Made only when the same Event happens again."""


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that silence costs seconds."""
    for made, name, seconds in ((Client, "timeout", 2.0), (Informer, "inactivity", 2.0)):
        defaults = made.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, name, seconds)
    monkeypatch.setattr(kopf_thread, "REQUEST_SECONDS", 2.0)
    monkeypatch.setattr(kopf_thread, "INACTIVITY", 2.0)
    monkeypatch.setattr(kopf_thread, "RECONNECT_SECONDS", 0.1)
    monkeypatch.setattr(kopf_watch, "LIST_SECONDS", 2.0)
    monkeypatch.setattr(webhooks, "LOOK", 0.3)
    monkeypatch.setattr(definitions, "LOOK", 2.0)


class Provoking:
    """Has a component make every kind of request again and again."""

    def __init__(self, c: Cluster, component: Component, work: Callable[[int], Work]) -> None:
        self._c = c
        self._component = component
        self._work = work
        self._numbers = itertools.count()
        self._open: list[Work] = []

    async def round(self) -> None:
        """More work, old watches cut off, and what has been done terminated."""
        if len(self._open) < 3:
            self._open.append(self._work(next(self._numbers)))
            await self._open[-1].submit()
        for work in list(self._open):
            if await work.done():
                self._open.remove(work)
                if isinstance(work, ControllerWork):
                    await work.terminate()
        for request in list(self._c.proxy.seen):
            if request[3]:
                self._c.proxy.send(request[1], GONE)

    async def all_done(self) -> None:
        """Everything that was begun, and one thing more, within a minute."""
        self._open.append(self._work(next(self._numbers)))
        await self._open[-1].submit()
        for work in self._open:

            async def done(work: Work = work) -> bool:
                self._component.restart_if_ended()
                return await work.done()

            await until(done, lambda: work.missing, 60, PAUSE)  # noqa: B023


async def requests_of(tmp_path: Path, make: Make) -> set[Request]:
    """Every kind of request that a component makes while it does its work."""
    async with cluster(tmp_path) as c:
        component, work = make(c)
        component.start()
        provoking = Provoking(c, component, work)
        for _ in range(3):
            await provoking.round()
        await provoking.all_done()
        await provoking.round()
        await component.stop()
        return {request for request in c.proxy.seen if request != ONCE}


async def lie_and_recover(tmp_path: Path, make: Make, lie: str, requests: set[Request]) -> None:
    tmp_path.mkdir()
    async with cluster(tmp_path) as c:
        for request in requests:
            c.proxy.lie(request, lie)
        component, work = make(c)
        component.start()
        provoking = Provoking(c, component, work)

        async def all_sent() -> bool:
            component.restart_if_ended()
            await provoking.round()
            return not c.proxy.lies_left()

        def left() -> str:
            return f"{lie}: not made: {requests - {request for request, _ in c.proxy.lied}}"

        await until(all_sent, left, 240, PAUSE)
        c.proxy.be_honest()
        await provoking.all_done()

        async def healthy() -> bool:
            component.restart_if_ended()
            return await component.healthy() == "ok"

        await until(healthy, lambda: f"{lie}: /healthz is not ok", 60, PAUSE)
        # It ends when it cannot renew its Lease in time, and only then.
        assert all(isinstance(error, NotLeading) for error in component.ended), component.ended
        await component.stop()


async def check(tmp_path: Path, make: Make, requests: set[Request]) -> None:
    tmp_path.mkdir()
    async with asyncio.TaskGroup() as group:
        for lie in LIES:
            group.create_task(lie_and_recover(tmp_path / lie, make, lie, requests))


def controllers(c: Cluster) -> tuple[Component, Callable[[int], Work]]:
    return c.controller_manager(kube_api_qps=1000.0, **LEASE), lambda number: ControllerWork(c.client, number)


def hypernodes(c: Cluster) -> tuple[Component, Callable[[int], Work]]:
    return c.hypernode_controller(**LEASE), lambda number: HyperNodeWork(c.client, number)


def admission(c: Cluster) -> tuple[Component, Callable[[int], Work]]:
    component, port = c.webhook_manager()
    return component, lambda number: WebhookWork(c.client, number, port)


@pytest.mark.slow
async def test_everything_works_again_after_each_lie(tmp_path: Path) -> None:
    requests = {}
    for make in (controllers, hypernodes, admission):
        (tmp_path / f"honest-{make.__name__}").mkdir()
        requests[make] = await requests_of(tmp_path / f"honest-{make.__name__}", make)
    assert len(requests[controllers]) >= 55 and len(requests[admission]) >= 7
    # The same process with one of the controllers: no request of its own.
    assert requests[hypernodes] <= requests[controllers]
    async with asyncio.TaskGroup() as group:
        for make in (controllers, admission):
            group.create_task(check(tmp_path / make.__name__, make, requests[make]))
