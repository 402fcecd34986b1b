"""When a cycle runs after a change: at once for a pod that is a job of its own, after the burst for others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup
from volcano_py.kube.health import Progress
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.runtime import loop as loops
from volcano_py.scheduler.runtime.loop import MIN_PAUSE, QUIET, STATUS_DELAY, CycleLoop


class Loop:
    """A loop on a clock that only its own pauses move; `cycles`: when they ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.cycles: list[float] = []
        self.model = Cluster(shadow_schedulers=frozenset({"volcano"}))
        self.model.dirty = False
        ready = asyncio.Event()
        ready.set()
        self.cache: Any = SimpleNamespace(model=self.model, events=0, ready=ready)
        handle: Any = SimpleNamespace(deciding=True, credits=10)
        self.loop = CycleLoop(self.cache, handle, Progress(10.0), (1.0, 60.0), self._cycle)
        monkeypatch.setattr(loops, "time", SimpleNamespace(monotonic=lambda: self.now))
        really = asyncio.sleep

        async def sleep(seconds: float) -> None:
            self.now += seconds
            await really(0)

        pauses = SimpleNamespace(sleep=sleep, Event=asyncio.Event, timeout=asyncio.timeout)
        monkeypatch.setattr(loops, "asyncio", pauses)

    def _cycle(self) -> float:
        self.cycles.append(self.now)
        self.model.dirty = self.model.jobs_moved = self.model.others_moved = False
        return float("inf")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.loop.run())
        await self.settled()
        yield
        task.cancel()

    async def settled(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def add(self, name: str, group: str = "") -> None:
        annotations = {"scheduling.k8s.io/group-name": group} if group else {}
        metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
        spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox"}]}
        manifest = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        pod: Pod = from_manifest(Pod, {"apiVersion": "v1", "kind": "Pod", **manifest})
        self.model.upsert("Pod", pod)
        self.cache.events += 1
        self.loop.wake()
        self.loop.pod_added(pod)


async def test_a_pod_alone_does_not_wait_for_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Loop(monkeypatch)
    async with live.running():
        live.now += 1
        begun, before = live.now, len(live.cycles)
        live.add("first")
        await live.settled()
        assert live.cycles[before:] == [begun]
        live.now += MIN_PAUSE / 2
        live.add("second")
        await live.settled()
        (second,) = live.cycles[before + 1 :]
        assert second >= begun + MIN_PAUSE, "cycles are not closer than the pause"


async def test_a_pod_of_a_gang_waits_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Loop(monkeypatch)
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2, "queue": "default"}}
    live.model.upsert("PodGroup", from_manifest(PodGroup, {"apiVersion": "scheduling.volcano.sh/v1beta1", **group}))
    live.model.dirty = live.model.jobs_moved = False
    async with live.running():
        live.now += 1
        begun, before = live.now, len(live.cycles)
        live.add("member", group="g")
        await live.settled()
        assert live.cycles[before:] == [pytest.approx(begun + QUIET)]


async def test_a_pod_that_is_being_bound_causes_no_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Loop(monkeypatch)
    async with live.running():
        live.now += 1
        before = len(live.cycles)
        live.add("first")
        await live.settled()
        assert len(live.cycles) == before + 1
        live.model.assume_binds([Bind("default", "first", "first", "n1", "default/podgroup-first")])
        live.model.jobs_moved = live.model.others_moved = True  # as after a cycle, and an event of another pod
        live.cache.events += 1
        live.loop.wake()
        await live.settled()
        assert len(live.cycles) == before + 1, "only statuses follow, which wait"
        assert live.now < live.cycles[-1] + STATUS_DELAY


async def test_a_change_that_decides_nothing_takes_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Loop(monkeypatch)
    async with live.running():
        live.now += 1
        at, before = live.now, len(live.cycles)
        for _ in range(5):
            live.cache.events += 1
            live.loop.wake()
            await live.settled()
        assert live.now == at and len(live.cycles) == before
