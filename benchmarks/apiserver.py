"""Pods on a real kube-apiserver with etcd: when they are bound, and the processor time of all parts.

    KUBEBUILDER_ASSETS=<folder with kube-apiserver and etcd> python -m benchmarks apiserver [--case NAME ...]

Nodes are objects only and no kubelet runs: the figures end with the bind. Every case has a control plane of its own,
and times are those at which a watch of this process shows the pods.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks.cluster import Cluster, Manifest, cpu_seconds, descendants, rate
from benchmarks.control_plane import process
from benchmarks.requests import bare
from tests.acceptance.envtest import Missing, assets, control_plane, install
from volcano_py.api.kinds import NODE, POD, PODGROUP, QUEUE
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer

GROUP = "scheduling.k8s.io/group-name"
CREATORS = 8
SETTLE = 10.0
"""Seconds for the programs to start, and for the last statuses to be written."""
LONGEST = 300.0
AMOUNTS = {"cpu": "32", "memory": "256Gi", "pods": "110"}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
PARTS = ("etcd", "kube-apiserver")
NO_LEASE = "--leader-elect=false"
LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")


class Case(NamedTuple):
    """`pace`: pods a second, 0: as fast as they can be created. `gang`: pods of a PodGroup that exists before the
    scheduler starts, 0: bare pods."""

    pods: int
    pace: int = 0
    gang: int = 0


CASES = {
    "bare": Case(2000),
    "paced": Case(500, pace=20),
    "gangs": Case(2000, gang=40),
    "many-gangs": Case(5000, gang=50),
}


class Watched:
    """When pods were created here, and when a watch first showed them on a node."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    def see(self, pod: Manifest) -> None:
        if pod["spec"].get("nodeName"):
            self.bound.setdefault(pod["metadata"]["name"], time.monotonic())

    async def until_bound(self) -> None:
        deadline = time.monotonic() + LONGEST
        while self.created.keys() - self.bound.keys():
            if time.monotonic() > deadline:
                raise click.ClickException(f"{len(self.created.keys() - self.bound.keys())} pods are not bound")
            await asyncio.sleep(0.05)

    def latencies(self) -> list[float]:
        """Milliseconds from the create to the bind, in ascending order."""
        return sorted((self.bound[name] - created) * 1000 for name, created in self.created.items())


@asynccontextmanager
async def plane(nodes: int) -> AsyncIterator[tuple[Cluster, Watched]]:
    """kube-apiserver and etcd with our CRDs and this many ready Nodes."""
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
        async with (
            control_plane(assets(dict(os.environ)), Path(folder)) as started,
            Client.from_kubeconfig(started.kubeconfig, lean=True, connections=64) as client,
        ):
            await install(client)
            await rate(nodes, lambda i: _node(client, f"node-{i:05d}"))
            watched = Watched()
            watch: Informer[Any] = Informer(client, POD)
            watch.on(add=watched.see, update=lambda _, pod: watched.see(pod))
            watching = asyncio.create_task(watch.run())
            await watch.synced.wait()
            yield Cluster(os.getpid(), client, Path(folder)), watched
            watching.cancel()


async def _node(client: Client, name: str) -> None:
    # kube-apiserver taints a Node as not ready when it is created, and leaves its status out.
    await client.create(NODE, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    await client.patch(NODE, name, {"spec": {"taints": None}})
    status = {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": [READY]}
    await client.patch(NODE, name, {"status": status}, subresource="status")


async def bare_pods(case: Case, c: Cluster, watched: Watched) -> tuple[float, float, dict[str, float]]:
    """(creation of the first pod, creation of the last one, CPU seconds by program)."""
    async with (
        process(c, "scheduler", NO_LEASE) as scheduler,
        process(c, "controller-manager", NO_LEASE, *LIMITS) as controllers,
    ):
        await asyncio.sleep(SETTLE)
        pids = {"scheduler": scheduler, "dispatcher": next(descendants(scheduler)), "controllers": controllers}
        pids |= dict(_parts(c.pid))
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        begun = time.monotonic()
        numbers = iter(range(case.pods))

        async def create() -> None:
            for i in numbers:
                if case.pace:
                    await asyncio.sleep(max(0.0, begun + i / case.pace - time.monotonic()))
                made = bare(i)
                watched.created[made["metadata"]["name"]] = time.monotonic()
                await c.client.create(POD, made)

        await asyncio.gather(*(create() for _ in range(1 if case.pace else CREATORS)))
        ended = time.monotonic()
        await watched.until_bound()
        return begun, ended, {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}


async def gangs(case: Case, c: Cluster, watched: Watched) -> tuple[float, float, dict[str, float]]:
    """The same; both times are the start of the scheduler's process."""
    await c.client.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    await c.client.patch(QUEUE, "default", {"status": {"state": "Open"}}, subresource="status")

    def group(i: int) -> Manifest:
        spec = {"minMember": case.gang, "queue": "default"}
        return {"metadata": {"name": f"gang-{i}", "namespace": "default"}, "spec": spec}

    async def member(i: int) -> None:
        made = bare(i)
        made["metadata"]["annotations"] = {GROUP: f"gang-{i // case.gang}"}
        await c.client.create(POD, made)

    await rate(case.pods // case.gang, lambda i: c.client.create(PODGROUP, group(i)))
    await rate(case.pods, member)
    pids = dict(_parts(c.pid))
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    begun = time.monotonic()
    watched.created = {bare(i)["metadata"]["name"]: begun for i in range(case.pods)}
    async with process(c, "scheduler", NO_LEASE) as scheduler:
        await watched.until_bound()
        pids |= {"scheduler": scheduler, "dispatcher": next(descendants(scheduler))}
        return begun, begun, {name: cpu_seconds(pid) - before.get(name, 0.0) for name, pid in pids.items()}


def _parts(pid: int) -> Iterator[tuple[str, int]]:
    for child in descendants(pid):
        name = Path(f"/proc/{child}/comm").read_text().strip()
        if name in PARTS:
            yield name, child


async def measure(name: str, case: Case, nodes: int) -> None:
    async with plane(nodes) as (c, watched):
        begun, created, spent = await (gangs if case.gang else bare_pods)(case, c, watched)
    last = max(watched.bound[pod] for pod in watched.created)
    latencies = watched.latencies()
    print(f"{name}: {case.pods} pods on {nodes} nodes")
    if not case.gang:
        print(f"  created in {created - begun:.1f} s")
    print(f"  bound after {last - begun:.1f} s, {case.pods / (last - begun):.0f} pods/s")
    if not case.gang:
        p99 = latencies[int(len(latencies) * 0.99)]
        print(f"  create to bind: P50 {latencies[len(latencies) // 2]:.0f} ms, P99 {p99:.0f} ms")
    row = ", ".join(f"{part} {seconds:.1f}" for part, seconds in spent.items())
    print(f"  CPU seconds: {row}, sum {sum(spent.values()):.1f}", flush=True)


@click.command()
@click.option("--case", "names", multiple=True, type=click.Choice(list(CASES)), help="Default: all.")
@click.option("--nodes", default=1000, show_default=True)
def apiserver(names: tuple[str, ...], nodes: int) -> None:
    """Time to bind on kube-apiserver and etcd from $KUBEBUILDER_ASSETS."""
    try:
        for name in names or CASES:
            asyncio.run(measure(name, CASES[name], nodes))
    except Missing as error:
        raise click.ClickException(str(error)) from None
