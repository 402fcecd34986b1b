"""A cluster that has something to show: queues, jobs that run, wait and were evicted, and racks of nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.dashboard.serving import Served, serving
from tests.e2e.cluster import until
from volcano_py.api.kinds import HYPERNODE, JOB, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox import volcano
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

Manifest = dict[str, Any]
RACK = 4
QUEUES = (
    ("research", "root", {"deserved": {"cpu": "120", "memory": "512Gi", "nvidia.com/gpu": "64"},
                          "guarantee": {"resource": {"cpu": "40", "memory": "128Gi"}}}),
    ("vision", "research", {"deserved": {"cpu": "60", "memory": "256Gi", "nvidia.com/gpu": "32"},
                            "capability": {"cpu": "120", "memory": "400Gi", "nvidia.com/gpu": "48"}}),
    ("language", "research", {"deserved": {"cpu": "60", "memory": "256Gi", "nvidia.com/gpu": "32"}}),
    ("reports", "root", {"weight": 2}),
)  # fmt: skip


def job(name: str, queue: str, replicas: int, seconds: int, minimum: int = 0, **requests: str) -> Manifest:
    """A Job of one role. `requests`: gpu stands for nvidia.com/gpu."""
    amounts = {"nvidia.com/gpu" if key == "gpu" else key: value for key, value in requests.items()}
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": amounts, "limits": amounts},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "queue": queue,
            "minAvailable": minimum or replicas,
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        },
    }


JOBS = (
    job("train-resnet", "vision", 8, 7200, cpu="8", memory="32Gi", gpu="4"),
    job("evaluate", "vision", 1, 7200, cpu="4", memory="16Gi", gpu="8"),
    job("tokenize", "language", 6, 7200, cpu="6", memory="16Gi"),
    job("nightly", "reports", 12, 7200, minimum=1, cpu="4", memory="8Gi"),
    job("hello", "reports", 2, 1, cpu="1", memory="1Gi"),
)
LATE = (
    job("pretrain-large", "language", 16, 900, cpu="12", memory="48Gi", gpu="8"),
    job("segment", "vision", 4, 900, cpu="8", memory="24Gi", gpu="8"),
)


@asynccontextmanager
async def story(folder: Path, nodes: int = 12, **options: Any) -> AsyncIterator[tuple[Sandbox, Client, Served]]:
    """A sandbox with our components and this story, and its dashboard."""
    arguments = volcano.dashboard_arguments(0)
    [metrics] = [a for a in arguments[volcano.DASHBOARD] if a.startswith("--metrics")]
    async with (
        Sandbox(
            nodes,
            node_shapes=[parse("cpu=16,memory=64Gi,nvidia.com/gpu=8")],
            components=("scheduler", "controller-manager"),
            component_arguments={"scheduler": arguments["scheduler"]},
            path=folder / "kubeconfig",
            logs=folder / "logs",
            **options,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        await _fill(client, nodes)
        async with serving(sandbox.kubeconfig, metrics) as served:
            yield sandbox, client, served


async def _fill(client: Client, nodes: int) -> None:
    racks = range(0, nodes, RACK)
    for number, first in enumerate(racks):
        names = [f"node-{n:0{len(str(nodes - 1))}}" for n in range(first, min(first + RACK, nodes))]
        await client.create(HYPERNODE, _hyper_node(f"rack-{number}", 1, "Node", names))
    await client.create(HYPERNODE, _hyper_node("hall", 2, "HyperNode", [f"rack-{n}" for n in range(len(racks))]))
    await until(lambda: is_open(client, "default"), "the default queue is not opened")
    for name, parent, spec in QUEUES:
        await client.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent, **spec}})
        await until(lambda name=name: is_open(client, name), f"queue {name} is not opened")  # type: ignore[misc]
    for made in JOBS:
        await client.create(JOB, made)
    await until(lambda: _phases(client, "Running", 4), "the jobs do not run")
    for made in LATE:
        await client.create(JOB, made)


def _hyper_node(name: str, tier: int, kind: str, members: list[str]) -> Manifest:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return {"metadata": {"name": name}, "spec": {"tier": tier, "members": listed}}


async def is_open(client: Client, name: str) -> bool:
    """Whether the controller has opened a queue."""
    found = await client.get(QUEUE, name)
    return (found.get("status") or {}).get("state") == "Open"


async def _phases(client: Client, phase: str, count: int) -> bool:
    found = await client.list(JOB, "default")
    return sum(1 for o in found if ((o.get("status") or {}).get("state") or {}).get("phase") == phase) >= count
