"""Restart and takeover on a sandbox: from a start to the first bind, and from the end of a dead leader's Lease to the
first bind of its standby.

The cluster is full of running pods, each in a PodGroup of ten, so that a fresh process has as much to read as in
production. Lists, decoding and the first cycle are part of the time; loading the sandbox is not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import datetime

import click

from benchmarks.cluster import Cluster, Manifest, cluster, cpu_seconds, descendants, pod, rate, resident
from benchmarks.control_plane import process
from volcano_py.api.kinds import LEASE, NODE, POD, PODGROUP

GANG = 10
LONGEST = 300.0
GROUP = "scheduling.k8s.io/group-name"


def group(name: str) -> Manifest:
    return {
        "apiVersion": PODGROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1, "queue": "default"},
    }


def member(i: int, of: str, node: str | None) -> Manifest:
    """A pod of a PodGroup; with a node it starts as soon as it is there."""
    made = pod(i)
    made["metadata"]["annotations"] = {GROUP: of}
    made["spec"] |= {"schedulerName": "volcano", **({"nodeName": node} if node else {})}
    return made


async def load(c: Cluster, pods: int) -> None:
    names = [node["metadata"]["name"] for node in await c.client.list(NODE)]
    await rate(pods // GANG, lambda i: c.client.create(PODGROUP, group(f"old-{i}")))
    await rate(pods, lambda i: c.client.create(POD, member(i, f"old-{i // GANG}", names[i % len(names)])))


async def first_bind(c: Cluster, number: int) -> float:
    """Create one more pod; the monotonic time at which it has a node."""
    await c.client.create(PODGROUP, group(f"late-{number}"))
    await c.client.create(POD, member(number, f"late-{number}", None))
    return await bound(c, number)


async def bound(c: Cluster, number: int) -> float:
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        found = await c.client.get(POD, f"pod-{number:05d}", "default")
        if found["spec"].get("nodeName"):
            return time.monotonic()
        await asyncio.sleep(0.01)
    raise click.ClickException(f"no bind after {LONGEST:g} s")


async def restarted(c: Cluster, number: int) -> None:
    """A pod waits; start the scheduler."""
    await c.client.create(PODGROUP, group(f"late-{number}"))
    await c.client.create(POD, member(number, f"late-{number}", None))
    begun = time.monotonic()
    async with process(c, "scheduler", "--leader-elect=false") as pid:
        took = await bound(c, number) - begun
        pids = [pid, *descendants(pid)]
        used = sum(map(cpu_seconds, pids))
        memory = " + ".join(f"{resident(p):.0f}" for p in pids)
    print(f"process start to first bind {took:6.2f} s, of which our CPU {used:5.2f} s; memory {memory} MiB", flush=True)


async def taken_over(c: Cluster, number: int) -> None:
    """Two replicas; the leader and its dispatcher end by kill -9."""
    lease = ("--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s")
    async with process(c, "scheduler", *lease) as leader:
        await first_bind(c, number)
        async with process(c, "scheduler", *lease):
            await asyncio.sleep(10)
            for pid in [*descendants(leader), leader]:
                os.kill(pid, signal.SIGKILL)
            died = time.monotonic()
            left = await _lease_left(c)
            at = await first_bind(c, number + 1)
    print(
        f"leader's death to first bind      {at - died:6.2f} s, its Lease had {left:5.2f} s left: "
        f"{max(at - died - left, 0):.2f} s after it expired",
        flush=True,
    )


async def _lease_left(c: Cluster) -> float:
    spec = (await c.client.get(LEASE, "volcano", "volcano-system"))["spec"]
    renewed = datetime.fromisoformat(spec["renewTime"]).timestamp()
    return float(renewed + spec["leaseDurationSeconds"] - time.time())


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--pods", default=20_000, show_default=True, help="Running pods, in PodGroups of ten.")
def restart(nodes: int, pods: int) -> None:
    """Start to first bind, and takeover by a standby, on a sandbox."""

    async def run() -> None:
        async with cluster(nodes, "none") as c:
            begun = time.monotonic()
            await load(c, pods)
            print(f"{nodes:,} nodes, {pods:,} running pods, loaded in {time.monotonic() - begun:.0f} s", flush=True)
            await restarted(c, pods)
            await taken_over(c, pods + 1)

    asyncio.run(run())
