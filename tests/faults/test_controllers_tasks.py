"""Every task of controller-manager, HyperNode controller and webhook-manager, killed by an arbitrary exception.

Either the component ends (its container is restarted) or it goes on with all of its work.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.faults.controlling import (
    Component,
    ControllerWork,
    FlowWork,
    HyperNodeWork,
    WebhookWork,
    Work,
    cluster,
    until,
)
from tests.faults.tasks import Killed, Tasks
from volcano_py.controllers import kopf_watch
from volcano_py.controllers.executor import NotLeading
from volcano_py.kube.backoff import Backoff
from volcano_py.webhooks import manager as webhooks

OURS = ("component", "thread")
ONE_WORKER = {
    "worker_threads": 1,
    "worker_threads_for_podgroup": 1,
    "worker_threads_for_queue": 1,
    "worker_threads_for_cronjob": 1,
    "kube_api_qps": 1000.0,
}


class Deaths:
    """Kills tasks of one component and watches what becomes of it."""

    def __init__(
        self, tasks: Tasks, component: Component, work: Callable[[int], Work], *, serves: bool = False
    ) -> None:
        """`serves`: wait for its server before the next kill; asyncio leaks a socket if it is killed in its start."""
        self._serves = serves
        self._tasks = tasks
        self._component = component
        self._work = work
        self._numbers = itertools.count()
        self._steady: set[str] = set()
        self.ended: set[str] = set()
        self.went_on: set[str] = set()
        self.never: set[str] = set()
        """Tasks that did not come again."""

    async def begin(self) -> list[str]:
        """Start the component and have it work; the names of its tasks so far."""
        self._component.start()
        await self.works("start")
        assert self._running, self._component.task
        self._steady = set(self._tasks.alive("component"))
        return self._tasks.names(*OURS)

    async def all(self, names: Iterable[str]) -> None:
        """Kill a task of each name, the one that lives or else the next one: the component ends, or goes on to work."""
        for name in names:
            try:
                killed = self._tasks.kill(name, owners=OURS)
            except LookupError:  # a task of kopf's thread may end at any moment
                self._tasks.kill_next(self._tasks.coroutine_of(name))
            else:
                await until(lambda: killed.raised or not killed.alive, lambda: f"{name} is not killed")  # noqa: B023
            await self.works(name)
            if self._running and self._tasks.armed:  # a task of its start
                await self._component.stop()
                self._component.start()
                await self.works(name)
            if self._tasks.armed:
                self._tasks.disarm()
                self.never.add(name)
            elif self._running:
                self.went_on.add(name)
                assert await self._component.healthy() == "ok", name
            else:
                self.ended.add(name)
                # Without its election a worker may be the first to notice.
                causes = (Killed, NotLeading) if name.startswith("leader") else Killed
                assert isinstance(self._component.task.exception(), causes), (name, self._component.task)
                self._component.start()
                await until(lambda: self._steady <= set(self._tasks.alive("component")), lambda: "it does not start")
                if self._serves:
                    await self.works("start")

    @property
    def _running(self) -> bool:
        return not self._component.task.done()

    async def works(self, name: str) -> None:
        """Have something done, unless the component ends."""
        await asyncio.wait([self._component.task], timeout=0.1)
        if not self._running:
            return
        work = self._work(next(self._numbers))
        await work.submit()

        async def settled() -> bool:
            return not self._running or await work.done()

        await until(settled, lambda: f"{name} was killed, and {work.missing}", 60)
        await asyncio.sleep(0)


@pytest.mark.slow
async def test_every_task_of_the_controller_manager(tmp_path: Path) -> None:
    tasks = Tasks()
    with tasks.recording():
        async with cluster(tmp_path) as c:
            component = c.controller_manager(**ONE_WORKER, watch_with_kopf=False)
            deaths = Deaths(tasks, component, lambda number: ControllerWork(c.client, number))
            names = await deaths.begin()
            await deaths.all(names)
            await component.stop()
    informers = {name for name in names if name.startswith("informer ")}
    workers = {name for name in names if name[-1].isdigit()}
    assert len(informers) == 17 and informers <= deaths.went_on
    assert len(workers) == 16 and not workers & deaths.never  # one that is killed at work on an object goes on
    assert {name.rpartition(" ")[0] for name in workers} <= deaths.ended
    assert {"controllers", "leadership", "leader election"} <= deaths.ended


@pytest.mark.slow
async def test_every_task_of_kopf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_watch, "LIST_SECONDS", 600.0)  # what kopf misses stays unknown
    monkeypatch.setattr(kopf_watch, "Backoff", lambda: Backoff(0.01, 0.02))  # it is ended a dozen times here
    tasks = Tasks()
    with tasks.recording():
        async with cluster(tmp_path) as c:
            component = c.controller_manager(controllers=["jobflow-controller"], kube_api_qps=1000.0)
            deaths = Deaths(tasks, component, lambda number: FlowWork(c.client, number))
            await deaths.begin()
            await until(lambda: c.proxy.seen["GET", "jobflows", "", True], lambda: "kopf does not watch")
            names = [name for name in tasks.names("thread") if name not in tasks.names("component")]
            await deaths.all(["kopf", *names])
            for _ in range(3):  # the first may have been found by the list before a run of kopf
                await deaths.works("the last one")
            await component.stop()
    assert "kopf" in deaths.ended and any(name.startswith("watcher for jobflows") for name in deaths.went_on)


@pytest.mark.slow
async def test_every_task_of_the_hypernode_controller(tmp_path: Path) -> None:
    tasks = Tasks()
    with tasks.recording():
        async with cluster(tmp_path) as c:
            component = c.hypernode_controller()
            deaths = Deaths(tasks, component, lambda number: HyperNodeWork(c.client, number))
            names = await deaths.begin()
            await deaths.all(names)
            await component.stop()
    assert {"informer hypernodes", "informer nodes"} <= deaths.went_on
    assert {name.rpartition(" ")[0] for name in names if name[-1].isdigit()} <= deaths.ended
    assert {"controllers", "leadership", "leader election"} <= deaths.ended


@pytest.mark.slow
async def test_every_task_of_the_webhook_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "LOOK", 0.2)
    tasks = Tasks()
    with tasks.recording():
        async with cluster(tmp_path) as c:
            component, port = c.webhook_manager()
            deaths = Deaths(tasks, component, lambda number: WebhookWork(c.client, number, port), serves=True)
            await deaths.all(await deaths.begin())
            await component.stop()
    assert {"informer queues", "informer namespaces"} <= deaths.went_on
    assert {"admission", "admission configuration"} <= deaths.ended
