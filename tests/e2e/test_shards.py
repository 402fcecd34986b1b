"""Two schedulers with hard shards on one cluster: no pod is bound twice, none is lost when one scheduler dies."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.e2e.cluster import until
from tests.e2e.journal import api_agrees, journal
from volcano_py.api.kinds import JOB, NODE, NODESHARD, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

PODS, JOBS = 1000, 20
CPUS, NODES = 128, 16
SHARDS = ("left", "right")


@asynccontextmanager
async def scheduler(sandbox: Sandbox, shard: str, logs: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A scheduler process that uses the nodes of one shard, with a Lease of its own."""
    arguments = ("--kubeconfig", sandbox.kubeconfig, "--scheduler-sharding-mode", "hard")
    arguments += ("--scheduler-sharding-name", shard, "--leader-elect-resource-name", f"volcano-{shard}")
    with (logs / f"{shard}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "volcano_py.cli.main", "scheduler", *arguments, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _job(name: str, replicas: int, node: str = "") -> dict[str, Any]:
    """Pods that may go anywhere, or only to one node."""
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "main", "image": "busybox", "command": ["sleep", "3600"], "resources": resources}
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if node:
        pod["nodeSelector"] = {"kubernetes.io/hostname": node}
    spec = {
        "minAvailable": 1,
        "schedulerName": "volcano",
        "tasks": [{"name": "main", "replicas": replicas, "template": {"spec": pod}}],
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": JOB.api_version, "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.mark.slow
async def test_a_thousand_pods_on_two_hard_shards(tmp_path: Path) -> None:
    shape = parse(f"cpu={CPUS},memory=512Gi,pods=200")
    async with (
        Sandbox(
            NODES,
            node_shapes=[shape],
            components=("controller-manager",),
            path=tmp_path / "kubeconfig",
            logs=tmp_path,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
        journal(client, CPUS) as kept,
    ):
        waiting.observe(sandbox)
        names = sorted(n["metadata"]["name"] for n in await client.list(NODE))
        nodes = {"left": set(names[::2]), "right": set(names[1::2])}
        for shard in SHARDS:
            body = {"apiVersion": NODESHARD.api_version, "kind": "NodeShard", "metadata": {"name": shard}}
            await client.create(NODESHARD, {**body, "spec": {"nodesDesired": sorted(nodes[shard])}})

        async def bound(count: int) -> bool:
            return len(kept.node_of) >= count

        async with scheduler(sandbox, "left", tmp_path) as left, scheduler(sandbox, "right", tmp_path):
            await until(lambda: _open(client), "the default queue is not opened")
            for i in range(JOBS // 2):
                # One job for each scheduler alone: which one is faster for the others is chance.
                node = names[i] if i < len(SHARDS) else ""
                await client.create(JOB, _job(f"a-{i}", PODS // JOBS, node), "default")
            await until(lambda: bound(PODS // 2), "the first half is not bound")
            of_both = {shard: sum(node in nodes[shard] for node in kept.node_of.values()) for shard in SHARDS}
            assert all(of_both.values()), f"a scheduler has bound nothing: {of_both}"
            for i in range(JOBS // 2):
                await client.create(JOB, _job(f"b-{i}", PODS // JOBS), "default")
            await until(lambda: bound(PODS // 2 + PODS // 10), "nothing of the second half is bound")
            left.kill()
            await left.wait()
            await until(lambda: bound(PODS), "pods of the second half were lost with a scheduler")
        assert kept.wrong == []
        await api_agrees(client, kept)
        print(f"bound by shard: {of_both} when both ran, {PODS} in all")


async def _open(client: Client) -> bool:
    found = [q for q in await client.list(QUEUE) if q["metadata"]["name"] == "default"]
    return bool(found) and (found[0].get("status") or {}).get("state") == "Open"
