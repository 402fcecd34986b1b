"""What the sandbox does: pods made and bound a second over TLS, memory, time to start.

The server runs in a process of its own and the client in this one, as on a real machine; the hollow kubelets are at
work in the server, so a binding costs it the start of a pod, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from pathlib import Path

import click

from benchmarks.cluster import GANG, cluster, gang, pod, rate, until_running
from benchmarks.figures import show
from benchmarks.scale import PODS, WATCHERS, crowded
from volcano_py.api.kinds import JOB, NODE, POD

TARGETS = {
    "start_ready_s": ("<=", 1.5),
    "creations_per_s": (">=", 1500.0),
    "creations_kept_per_s": (">=", 800.0),
    "bindings_per_s": (">=", 2000.0),
    "altogether_mib": ("<=", 1536.0),
    "large_mib": ("<=", 800.0),
    "list_s": ("<=", 2.5),
    "paged_stall_ms": ("<=", 100.0),
    "deliveries_per_s": (">=", 20_000.0),
}


async def throughput(nodes: int, pods: int) -> dict[str, float]:
    """Creations and bindings a second, and the server's memory with all of it."""
    async with cluster(nodes, "none") as c:
        names = [node["metadata"]["name"] for node in await c.client.list(NODE)]
        empty = c.memory()
        created = await rate(pods, lambda i: c.client.create(POD, pod(i)))
        await asyncio.sleep(1)
        pending = c.memory()

        def bind(i: int) -> Awaitable[object]:
            target = {"apiVersion": "v1", "kind": "Node", "name": names[i % nodes]}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"pod-{i:05d}"}, "target": target}
            return c.client.create_subresource(POD, f"pod-{i:05d}", "binding", body, "default")

        bound = await rate(pods, bind)
        await until_running(c.client, pods)
        return {
            "creations_per_s": created,
            "bindings_per_s": bound,
            "server_empty_mib": empty,
            "server_pending_mib": pending,
            "server_running_mib": c.memory(),
        }


async def kept(pods: int) -> dict[str, float]:
    """Creations a second when everything is kept: through a kill -9, and through a power cut, too."""
    out = {}
    for name, more in (("creations_kept_per_s", ()), ("creations_synced_per_s", ("--fsync",))):
        async with cluster(20, "none", "--data", "FOLDER/data", *more) as c:
            out[name] = await rate(pods, lambda i: c.client.create(POD, pod(i)))
    return out


async def whole(nodes: int, pods: int) -> dict[str, float]:
    """Gangs through controllers and scheduler: until all run, and the memory of all programs then."""
    async with cluster(nodes, "scheduler,controller-manager") as c:
        begun = time.perf_counter()
        for i in range(pods // GANG):
            await c.client.create(JOB, gang(i))
        await until_running(c.client, pods // GANG * GANG)
        took = time.perf_counter() - begun
        await asyncio.sleep(2)
        return {"jobs_to_running_s": took, "altogether_mib": c.altogether(), "server_of_it_mib": c.memory()}


async def start(nodes: int) -> dict[str, float]:
    """From the command to an API server with all nodes Ready; and on to the first job that runs."""
    begun = time.perf_counter()
    async with cluster(nodes, "scheduler,controller-manager") as c:
        ready = time.perf_counter() - begun
        one = gang(0)
        one["spec"]["minAvailable"] = one["spec"]["tasks"][0]["replicas"] = 1
        await c.client.create(JOB, one)
        while not await c.client.list(POD, "default", field_selector="status.phase=Running"):
            await asyncio.sleep(0.02)
        return {"start_ready_s": ready, "start_first_job_s": time.perf_counter() - begun}


# ---- the table


ROWS = (
    ("start_ready_s", "start: nodes Ready", "s"),
    ("start_first_job_s", "start: first job Running", "s"),
    ("creations_per_s", "pod creations", "/s"),
    ("creations_kept_per_s", "pod creations with --data", "/s"),
    ("creations_synced_per_s", "pod creations with --data --fsync", "/s"),
    ("bindings_per_s", "bindings", "/s"),
    ("server_empty_mib", "server with {nodes} nodes", "MiB"),
    ("server_pending_mib", "server with {nodes} nodes, {pods} pods pending", "MiB"),
    ("server_running_mib", "server with {nodes} nodes, {pods} pods running", "MiB"),
    ("jobs_to_running_s", "{gangs} gangs of {gang}: submitted to Running", "s"),
    ("server_of_it_mib", "server with these jobs", "MiB"),
    ("altogether_mib", "server, scheduler, dispatcher and controllers", "MiB"),
    ("large_mib", "server with {large} pods running", "MiB"),
    ("list_s", "list of {large} pods", "s"),
    ("paged_s", "the same by pages of 500", "s"),
    ("paged_stall_ms", "longest wait of others meanwhile", "ms"),
    ("deliveries_per_s", "events delivered to {watchers} watchers", "/s"),
)


@click.command()
@click.option("--nodes", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--pods", type=click.IntRange(GANG), default=10_000, show_default=True)
@click.option("--large", type=click.IntRange(500), default=PODS, show_default=True, help="Pods of the large cluster.")
@click.option("--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to this file.")
def sandbox(nodes: int, pods: int, large: int, out: Path | None) -> None:
    """Measure the sandbox: rates over TLS, memory, time to start (about three minutes)."""

    async def measure() -> dict[str, float]:
        return {
            **await start(20),
            **await throughput(nodes, pods),
            **await kept(pods),
            **await whole(nodes, pods),
            **await crowded(large),
        }

    if not Path("/proc/self/smaps_rollup").exists():
        raise click.ClickException("this benchmark reads /proc/PID/smaps_rollup, which only Linux has")
    figures = asyncio.run(measure())
    words = {"nodes": nodes, "pods": pods, "gangs": pods // GANG, "gang": GANG, "large": large, "watchers": WATCHERS}
    show(figures, ROWS, TARGETS, words, out)
