"""Each asyncio task of scheduler and dispatcher dies: it is replaced, or the process ends. It never just goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.local_dispatcher import LocalDispatcher
from tests.faults.scheduling import Cluster, cluster, until
from tests.faults.tasks import Killed, Recorded, Tasks
from volcano_py.api.kinds import COMPOSITE_PODGROUP, POD
from volcano_py.scheduler.cache.kinds import watched
from volcano_py.scheduler.dispatch import handle
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.runtime.server import Scheduler

QUICK = {"leader_elect": True, "lease_duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.2}
INFORMERS = {f"informer {entry.plural}" for entry in watched(DEFAULT_GATES) if entry.rt != COMPOSITE_PODGROUP}
"""They list again."""
NOT_SERVED = {f"informer {e.plural}" for e in watched(DEFAULT_GATES) if e.rt == COMPOSITE_PODGROUP}
"""It waits until its kind is served, which is not the case on the 1.36 cluster of these tests."""
DECIDER = {
    "cache",
    "first lists",
    "takeover",
    "rebuild",
    "cache audit",
    "cycles",
    "configuration",
    "resync",
    "device configuration",
    "chip reports",
    "history",
    "reservations",
    "extenders",
    "usage",
    "dispatcher",
    "decider heartbeat",
    "dispatcher watchdog",
}
"""They end the scheduler."""
DISPATCHER = {"dispatcher process", "end", "election", "lease", "decider watchdog", "dispatcher heartbeat"}
"""They end the dispatcher, which the scheduler replaces."""


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle.subprocess, "Popen", LocalDispatcher)


@contextlib.asynccontextmanager
async def started(c: Cluster) -> AsyncIterator[tuple[Scheduler, asyncio.Task[None], Tasks]]:
    """A scheduler that works, and its tasks."""
    tasks = Tasks()
    with tasks.recording():
        scheduler = Scheduler(c.options(**QUICK))
        task = asyncio.create_task(scheduler.run(), name="scheduler")
        try:
            await until(lambda: task.done() or scheduler.cache.ready.is_set(), "no lists")
            await until(lambda: task.done() or scheduler.handle.leading, "it does not lead")
            yield scheduler, task, tasks
        finally:
            task.cancel()
            await asyncio.wait([task])


def of_the_scheduler(recorded: Recorded) -> bool:
    """Whether it is a task of scheduler or dispatcher, and not of aiohttp, the sandbox or the test."""
    code = getattr(recorded, "cr_code", None)
    return code is not None and "/volcano_py/scheduler/" in code.co_filename


@pytest.mark.slow
async def test_every_task_is_replaced_or_ends_its_process(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c:
        async with started(c) as (_, _, tasks):
            await c.submit("first")
            await c.scheduled("first")
            alive = {one.name for one in tasks.created if one.alive and of_the_scheduler(one)}
        assert alive - {"scheduler", "write"} == INFORMERS | NOT_SERVED | DECIDER | DISPATCHER
        async with started(c) as (scheduler, task, tasks):
            killed_ones = [tasks.kill(name) for name in INFORMERS]
            await until(lambda: all(one.raised for one in killed_ones), "not every informer could be killed")
            await c.submit("informers")
            await c.scheduled("informers")
            assert scheduler.health.answer() == (True, "ok") and not task.done()
        for i, name in enumerate(sorted(DECIDER | DISPATCHER)):
            async with started(c) as (scheduler, task, tasks):
                killed = tasks.kill(name)
                await until(lambda: killed.raised, f"{name} could not be killed")  # noqa: B023
                if name in DECIDER:
                    await until(task.done, f"{name} died, and the scheduler goes on")
                    assert isinstance(task.exception(), Killed), name
                    continue
                await until(lambda: scheduler.handle.restarts, f"{name} died, and the dispatcher goes on")
                await c.submit(f"gang-{i}")
                await c.scheduled(f"gang-{i}")
                assert scheduler.health.answer() == (True, "ok")
                assert not task.done()


async def test_a_write_that_dies_ends_the_dispatcher(tmp_path: Path) -> None:
    binding = ("POST", "pods", "binding", False)
    async with cluster(tmp_path) as c, started(c) as (scheduler, _, tasks):
        c.proxy.stall(binding)
        await c.submit("g", 1)
        await until(lambda: c.proxy.stalled, "nothing is bound")
        for one in tasks.created:
            if one.name == "write" and one.alive:
                one.throw = _raise_always(one)  # type: ignore[method-assign]
        tasks.kill("write")
        await until(lambda: scheduler.handle.restarts, "the dispatcher goes on without its write")
        c.proxy.flow()
        await c.scheduled("g", 1)


def _raise_always(one: Recorded):  # type: ignore[no-untyped-def]
    """The error leaves the task whatever its code catches."""

    def throw(*args: object) -> None:
        one.close()
        one.raised = True
        raise Killed("the write died")

    return throw


async def test_a_read_of_an_unknown_pod_survives(tmp_path: Path) -> None:
    read = ("GET", "pods", "", False)
    async with cluster(tmp_path) as c, started(c) as (scheduler, task, tasks):
        await c.submit("g", 1)
        await c.scheduled("g", 1)
        meta = (await c.client.get(POD, "g-0", "default"))["metadata"]
        c.proxy.stall(read)
        scheduler.cache.resync._request_grace = 0.1
        scheduler.cache.resync.add(Bind("default", "g-0", meta["uid"], "node-0", "default/g"))
        await until(lambda: c.proxy.stalled, "the pod is not read")
        killed = tasks.kill("read of an unknown pod")
        await until(lambda: killed.raised, "the read could not be killed")
        c.proxy.flow()
        await until(lambda: scheduler.cache.resync.unknown == 0, "it stays unknown")
        assert c.proxy.seen[read] == 2 and not task.done()
