"""Two queues with weights 1 and 3 share a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.e2e.cluster import bound, cluster, job, node, until
from volcano_py.api.kinds import JOB, NODE, PODGROUP, QUEUE
from volcano_py.kube.client import Client


async def _queue(client: Client, name: str, weight: int) -> None:
    body = {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}
    await client.create(QUEUE, body)

    async def is_open() -> bool:
        return str(((await client.get(QUEUE, name)).get("status") or {}).get("state")) == "Open"

    await until(is_open, f"queue {name} is not open")


@pytest.mark.parametrize(
    "cpus", [8, pytest.param(20, marks=pytest.mark.slow), pytest.param(44, marks=pytest.mark.slow)]
)
async def test_backlogs_share_by_weight_and_an_idle_queue_lends(tmp_path: Path, cpus: int) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=0,memory=8Gi") as (_, client):
        await _queue(client, "light", 1)
        await _queue(client, "heavy", 3)
        for queue in ("light", "heavy"):
            for i in range(cpus):
                await client.create(JOB, job(f"{queue}-{i}", 1, "1", seconds=600, queue=queue), "default")

        async def backlog() -> bool:
            return len(await client.list(PODGROUP, "default")) == 2 * cpus

        await until(backlog, "the backlogs do not exist")
        await client.create(NODE, node("room", str(cpus), "64Gi"))

        async def held(queue: str) -> int:
            counts = await asyncio.gather(*(bound(client, f"{queue}-{i}") for i in range(cpus)))
            return sum(counts)

        async def full() -> bool:
            return await held("light") + await held("heavy") == cpus

        await until(full, "the cluster is not full")
        await asyncio.sleep(0.5)
        light, heavy = await held("light"), await held("heavy")
        assert light + heavy == cpus
        assert abs(light - cpus / 4) <= 1, f"light {light}, heavy {heavy}"


async def test_a_queue_without_jobs_lends(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=8,memory=64Gi") as (_, client):
        await _queue(client, "light", 1)
        await _queue(client, "heavy", 3)
        await client.create(JOB, job("all", 8, "1", seconds=600, queue="light"), "default")

        async def all_bound() -> bool:
            return await bound(client, "all") == 8

        await until(all_bound, "the idle queue does not lend")
