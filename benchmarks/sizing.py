"""Memory and processor time of scheduler, dispatcher and controllers in clusters of several sizes.

`python -m benchmarks sizing` prints the rows of the table in docs/operations.md. Each cluster gets four waves of Jobs,
which are gangs of ten pods; the last wave is measured, while the pods of the others run.
"""

from __future__ import annotations

import asyncio
import time

import click

from benchmarks.cluster import cluster, cpu_seconds, descendants, rate, resident
from benchmarks.control_plane import CONTROLLERS, job, process
from volcano_py.api.kinds import JOB
from volcano_py.kube.client import Client

GANG = 10
WAVES = 4
LONGEST = 600.0
REST = 20.0
"""Seconds without changes, for the processor time at rest."""


async def until_running(client: Client, pods: int) -> None:
    """Wait until Jobs report this number of running pods."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        found = await client.list(JOB, None)
        if sum((one.get("status") or {}).get("running", 0) for one in found) >= pods:
            return
        await asyncio.sleep(2)
    raise click.ClickException(f"not {pods} pods run after {LONGEST:g} s")


@click.command()
@click.option("--nodes", "sizes", multiple=True, type=int, default=(100, 1000, 5000), show_default=True)
@click.option("--pods-a-node", default=4, show_default=True, help="How many pods run at the end.")
def sizing(sizes: tuple[int, ...], pods_a_node: int) -> None:
    """Memory and processor time of our programs by the size of the cluster."""
    click.echo("| Nodes, pods | Program | Memory | CPU seconds for 1,000 new pods | CPU at rest |")
    click.echo("|---|---|---|---|---|")
    for nodes in sizes:
        asyncio.run(_one(nodes, nodes * pods_a_node))


async def _one(nodes: int, pods: int) -> None:
    wave = max(1, pods // WAVES // GANG)
    async with (
        cluster(nodes, "none") as c,
        process(c, "scheduler", "--leader-elect=false") as scheduler,
        process(c, "controller-manager", *CONTROLLERS) as controllers,
    ):
        await asyncio.sleep(5)
        for number in range(WAVES):
            dispatcher = next(iter(descendants(scheduler)))
            pids = {"scheduler": scheduler, "dispatcher": dispatcher, "controllers": controllers}
            before = {name: cpu_seconds(pid) for name, pid in pids.items()}
            await rate(wave, lambda i, number=number: c.client.create(JOB, job(f"w{number}-{i:05d}", GANG, "3600")))  # type: ignore[misc]
            await until_running(c.client, (number + 1) * wave * GANG)
        await asyncio.sleep(5)
        used = {name: (cpu_seconds(pid) - before[name]) / (wave * GANG) * 1000 for name, pid in pids.items()}
        memory = {name: resident(pid) for name, pid in pids.items()}
        begun = time.monotonic()
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        await asyncio.sleep(REST)
        spent = time.monotonic() - begun
        for name, pid in pids.items():
            rest = (cpu_seconds(pid) - before[name]) / spent
            where = f"{nodes:,}, {WAVES * wave * GANG:,}" if name == "scheduler" else ""
            click.echo(f"| {where} | {name} | {memory[name]:.0f} MiB | {used[name]:.1f} | {rest:.1%} |")
