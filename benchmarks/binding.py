"""How soon pods are bound on the sandbox: single pods in an idle cluster, and many Jobs at once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import click

from benchmarks.cluster import Cluster, at_rest, cluster, rate
from benchmarks.control_plane import CONTROLLERS, job, process
from benchmarks.requests import bare
from volcano_py.api.kinds import JOB, POD
from volcano_py.kube import Informer

RATE = 5
"""Single pods that are created per second."""


class Watched:
    """When the watch has shown each pod, and when with a node; in seconds of `time.perf_counter`."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    def note(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        self.seen.setdefault(name, time.perf_counter())
        if pod["spec"].get("nodeName"):
            self.bound.setdefault(name, time.perf_counter())

    async def until(self, pods: int) -> None:
        while len(self.bound) < pods:
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(nodes: int) -> AsyncIterator[tuple[Cluster, Watched]]:
    """A sandbox with scheduler and controllers, and a watch of its pods."""
    async with (
        cluster(nodes, "none") as c,
        process(c, "scheduler", "--leader-elect=false") as scheduler,
        process(c, "controller-manager", *CONTROLLERS) as controllers,
    ):
        watched = Watched()
        informer: Informer[Any] = Informer(c.client, POD, dict, "default")
        informer.on(add=watched.note, update=lambda _, new: watched.note(new))
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        await at_rest(scheduler, controllers)
        yield c, watched
        task.cancel()


async def idle(nodes: int, seconds: int) -> list[float]:
    """Milliseconds from the request that creates a pod until the watch shows its node, in order."""
    async with running(nodes) as (c, watched):
        created: dict[str, float] = {}
        for i in range(RATE * seconds + 1):
            pod = bare(i)
            created[pod["metadata"]["name"]] = begun = time.perf_counter()
            await c.client.create(POD, pod)
            if not i:  # the first one loads what later ones use
                await watched.until(1)
                created.clear()
            await asyncio.sleep(max(0.0, begun + 1 / RATE - time.perf_counter()))
        await watched.until(RATE * seconds + 1)
    return sorted(1000 * (watched.bound[name] - at) for name, at in created.items())


async def busy(nodes: int, jobs: int, size: int) -> tuple[float, list[float]]:
    """Pods that are bound per second, and milliseconds from the first event of a pod until the watch shows its node."""
    async with running(nodes) as (c, watched):
        begun = time.perf_counter()
        await rate(jobs, lambda i: c.client.create(JOB, job(f"job-{i:04d}", size, "infinity")))
        await watched.until(jobs * size)
        waits = sorted(1000 * (at - watched.seen[name]) for name, at in watched.bound.items())
    return jobs * size / (max(watched.bound.values()) - begun), waits


def _percentiles(waits: list[float]) -> str:
    return f"P50 {waits[len(waits) // 2]:.0f} ms, P99 {waits[len(waits) * 99 // 100]:.0f} ms"


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--seconds", default=30, show_default=True, help=f"In which {RATE} single pods per second are created.")
@click.option("--jobs", default=400, show_default=True)
@click.option("--size", default=20, show_default=True, help="Pods of a Job.")
def binding(nodes: int, seconds: int, jobs: int, size: int) -> None:
    """How soon pods are bound on a sandbox."""
    waits = asyncio.run(idle(nodes, seconds))
    print(f"{len(waits)} single pods, {RATE} per second, on {nodes} nodes: created to bound {_percentiles(waits)}")
    speed, waits = asyncio.run(busy(nodes, jobs, size))
    print(f"{jobs} Jobs of {size} at once: {speed:.0f} pods/s, {_percentiles(waits)} from the pod's first event")
