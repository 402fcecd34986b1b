"""A gang of 3 where 2 fit, both ways, and what happens when there is room."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.e2e.cluster import bound, cluster, group_phase, job, kubectl, node, phase_of, pods_of, until
from volcano_py.api.kinds import JOB, NODE, POD
from volcano_py.kube.client import Client


async def test_a_gang_that_enqueue_stops_has_no_pods_until_a_node_is_added(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=2, shape="cpu=2,memory=8Gi") as (sandbox, client):
        # 6 cpu where 4 × 1.2 may be promised: not let in
        await client.create(JOB, job("gang", 3, "2"), "default")
        await until(lambda: group_phase(client, "gang"), "there is no PodGroup")
        await asyncio.sleep(1.5)
        assert await group_phase(client, "gang") == "Pending"
        assert await pods_of(client, "gang") == []

        await client.create(NODE, node("late", "2"))

        async def all_bound() -> bool:
            return await bound(client, "gang") == 3

        await until(all_bound, "the gang is not bound")

        async def running() -> bool:
            return await phase_of(client, "gang") == "Running" and await group_phase(client, "gang") == "Running"

        await until(running, "the gang does not run")
        code, out, err = await kubectl(sandbox, tmp_path, "get", "vcjob,podgroup,queue")
        assert code == 0, err
        rows = [line.split() for line in out.splitlines() if line.strip()]
        assert ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"] in rows
        assert next(r for r in rows if r[0].endswith("/gang"))[1:4] == ["Running", "3", "3"]
        assert next(r for r in rows if r[0].startswith("podgroup."))[1:4] == ["Running", "3", "3"]
        assert next(r for r in rows if r[0].startswith("queue."))[1:4] == ["root", "Open", "1"]
        await _completes(client, "gang")


async def test_a_gang_that_is_let_in_but_fragmented_is_not_bound_until_a_node_is_added(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=3, shape="cpu=2,memory=8Gi") as (_, client):
        # 4.5 of 6 cpu: let in; but only one pod of 1.5 fits a node whose other half is taken
        filler = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "filler", "namespace": "default"},
            "spec": {
                "nodeName": "node-0",
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
            },
        }
        await client.create(POD, filler, "default")
        await client.create(JOB, job("gang", 3, "1500m"), "default")

        async def three_pods() -> bool:
            return len(await pods_of(client, "gang")) == 3

        await until(three_pods, "the pods are not made")
        await asyncio.sleep(1.5)
        assert await bound(client, "gang") == 0
        assert await group_phase(client, "gang") == "Inqueue"
        conditions = [c for p in await pods_of(client, "gang") for c in p["status"].get("conditions") or ()]
        assert any("Insufficient cpu" in c.get("message", "") for c in conditions)

        await client.create(NODE, node("late", "2"))

        async def all_bound() -> bool:
            return await bound(client, "gang") == 3

        await until(all_bound, "the gang is not bound")
        await _completes(client, "gang")


async def _completes(client: Client, name: str) -> None:
    async def reached() -> bool:
        return await phase_of(client, name) == "Completed"

    await until(reached, f"{name} is not Completed")

    async def gone() -> bool:
        return await group_phase(client, name) == ""

    await until(gone, "the group of the finished job is still there")


async def test_pods_of_the_default_scheduler_run_without_a_group(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (sandbox, client):
        code, _, err = await kubectl(
            sandbox, tmp_path, "run", "plain", "--image=busybox", "--restart=Never", "--", "sleep", "1"
        )
        assert code == 0, err

        async def done() -> bool:
            return str((await client.get(POD, "plain", "default"))["status"]["phase"]) == "Succeeded"

        await until(done, "the pod has not run")
        code, out, err = await kubectl(sandbox, tmp_path, "get", "podgroup")
        assert "No resources found" in out + err
