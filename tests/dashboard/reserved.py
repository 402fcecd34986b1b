"""A cluster whose future has something to show: jobs with limits, a gang for which nodes are held, and Reservations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.dashboard.serving import Served, serving
from tests.dashboard.story import is_open, job
from tests.e2e.cluster import until
from volcano_py.api.kinds import JOB, PODGROUP, RESERVATION
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

Manifest = dict[str, Any]
NODES = 6
CONF = """\
actions: "enqueue, reserve, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates}
  - {name: nodeorder}
  - {name: advance-reservation}
  - {name: reservation, arguments: {large-patience: 0s, reservations: 2}}
"""
RUNNING = (("resnet", 2, "35m"), ("evaluate", 1, "80m"), ("tokenize", 2, "2h"), ("notebook", 1, "4h"))
"""Name, pods of a whole node each, and limit."""
WAITING = (("pretrain-large", 5, "3h"), ("fine-tune", 4, "1h"))


@asynccontextmanager
async def reserved(folder: Path) -> AsyncIterator[Served]:
    """A sandbox with these jobs and Reservations, and its dashboard."""
    conf = folder / "scheduler.conf"
    conf.write_text(CONF)
    async with (
        Sandbox(
            NODES,
            node_shapes=[parse("cpu=16,memory=64Gi")],
            components=("scheduler", "controller-manager"),
            component_arguments={"scheduler": (f"--scheduler-conf={conf}",)},
            path=folder / "kubeconfig",
            logs=folder / "logs",
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        await until(lambda: is_open(client, "default"), "the default queue is not opened")
        for made in (
            _reservation("maintenance", 5, 1, ["node-5"]),
            _reservation("class", 6.5, 2, ["node-3", "node-4"]),
        ):
            await client.create(RESERVATION, made)
        for jobs in (RUNNING, WAITING):
            for name, pods, limit in jobs:
                made = job(name, "default", pods, 7200, cpu="16", memory="32Gi")
                made["metadata"]["annotations"] = {"volcano.sh/max-run-time": limit}
                await client.create(JOB, made)
            await until(lambda: _running(client, len(RUNNING)), "the jobs do not run")
        async with serving(sandbox.kubeconfig) as served:
            yield served


def _reservation(name: str, hours: float, duration: int, nodes: list[str]) -> Manifest:
    start = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"metadata": {"name": name}, "spec": {"startTime": start, "duration": f"{duration}h", "nodes": nodes}}


async def _running(client: Client, count: int) -> bool:
    groups = await client.list(PODGROUP, "default")
    return sum((group.get("status") or {}).get("phase") == "Running" for group in groups) >= count
