"""A sandbox with our components for a test, and what tests ask of it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests import waiting
from tests.kubectl import find as find_kubectl
from volcano_py.api.kinds import JOB, NODE, POD, PODGROUP, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import NodeShape, parse

Manifest = dict[str, Any]


@asynccontextmanager
async def cluster(
    tmp_path: Path,
    nodes: int = 2,
    shape: str = "cpu=2,memory=8Gi",
    scheduler: tuple[str, ...] = (),
    feature_gates: str = "",
    kubernetes_version: str = "1.36",
) -> AsyncIterator[tuple[Sandbox, Client]]:
    """A cluster whose components are at work (its queues are open)."""
    shapes: list[NodeShape] = [parse(shape)]
    async with (
        Sandbox(
            nodes,
            node_shapes=shapes,
            components=("scheduler", "controller-manager"),
            component_arguments={"scheduler": scheduler},
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
            feature_gates=feature_gates,
            kubernetes_version=kubernetes_version,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        await until(lambda: _open(client), "the default queue is not opened")
        yield sandbox, client


async def _open(client: Client) -> bool:
    found = await client.get(QUEUE, "default")
    return (found.get("status") or {}).get("state") == "Open"


async def until(holds: Callable[[], Awaitable[Any]], otherwise: str, seconds: float = waiting.BUDGET) -> Any:
    """Wait for something to become true; returns it. `seconds` is for what may take longer than others."""
    return await waiting.until(holds, otherwise, max(seconds / waiting.BUDGET, 1.0))


def job(
    name: str, replicas: int, cpu: str, seconds: int = 2, queue: str = "default", minimum: int | None = None
) -> Manifest:
    """A Job of one task."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": replicas if minimum is None else minimum,
            "schedulerName": "volcano",
            "queue": queue,
            "tasks": [
                {
                    "name": "main",
                    "replicas": replicas,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
                }
            ],
        },
    }


def node(name: str, cpu: str, memory: str = "8Gi") -> Manifest:
    have = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": NODE.api_version,
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": have, "capacity": have},
    }


async def phase_of(client: Client, name: str) -> str:
    found = await client.get(JOB, name, "default")
    return str(((found.get("status") or {}).get("state") or {}).get("phase", ""))


async def group_phase(client: Client, job_name: str) -> str:
    for group in await client.list(PODGROUP, "default"):
        if any(r["name"] == job_name for r in group["metadata"].get("ownerReferences") or ()):
            return str((group.get("status") or {}).get("phase", ""))
    return ""


async def pods_of(client: Client, job_name: str) -> list[Manifest]:
    return list(await client.list(POD, "default", label_selector=f"volcano.sh/job-name={job_name}"))


async def bound(client: Client, job_name: str) -> int:
    return sum(1 for p in await pods_of(client, job_name) if p["spec"].get("nodeName"))


async def kubectl(sandbox: Sandbox, tmp_path: Path, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """Run the real kubectl against a sandbox: exit code, output, errors."""
    program = find_kubectl()
    assert program, "no kubectl: install it, or make setup"
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "KUBECONFIG": sandbox.kubeconfig,
            "HOME": str(tmp_path),
            "KUBECACHEDIR": str(tmp_path / "kubecache"),
        },
    )
    out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def log_of(sandbox: Sandbox, component: str) -> str:
    """What a component has logged so far."""
    assert sandbox.logs is not None
    file = sandbox.logs / f"{component}.log"
    return file.read_text() if file.exists() else ""


SERVE_METRICS = ("--enable-metrics", "--listen-address=127.0.0.1:0")
"""Flags of a component whose `metrics_of` a test asks for."""


async def metrics_of(sandbox: Sandbox, component: str = "scheduler") -> dict[str, float]:
    """The component's metrics: name with labels → value."""
    found = re.search(r"/metrics is served on (\S+)", log_of(sandbox, component))
    assert found, f"{component} was not started with SERVE_METRICS"
    async with aiohttp.ClientSession() as session, session.get(f"http://{found[1]}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    rows = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


async def nodes_of(client: Client, job_name: str) -> list[str]:
    """The nodes of a job's pods, "" for one that is not bound."""
    return [p["spec"].get("nodeName", "") for p in await pods_of(client, job_name)]
