"""A gang of 3 where 2 fit, both ways, and what happens when there is room."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.e2e.cluster import bound, cluster, group_phase, job, kubectl, node, phase_of, pods_of, until
from volcano_py.api.kinds import JOB, NODE, POD
from volcano_py.api.resource_types import namespaced_kind
from volcano_py.kube.client import Client

BATCH_JOB = namespaced_kind("batch/v1", "jobs", "Job")


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


async def test_a_batch_job_is_a_gang_although_its_group_is_formed_by_the_controller(tmp_path: Path) -> None:
    """Six pods of which three fit: no pod starts, and all do when there is capacity."""
    async with cluster(tmp_path, nodes=3, shape="cpu=4,memory=8Gi") as (_, client):
        container = {"name": "c", "image": "busybox", "command": ["sleep", "600"]}
        container |= {"resources": {"requests": {"cpu": "3"}}}
        pod = {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [container]}
        annotations = {"scheduling.volcano.sh/group-min-member": "6"}
        six = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "six", "annotations": annotations},
            "spec": {"parallelism": 6, "completions": 6, "template": {"spec": pod}},
        }
        await client.create(BATCH_JOB, six, "default")

        async def all_wait() -> bool:
            pods = await client.list(POD, "default")
            assert not [one for one in pods if one["spec"].get("nodeName")], "a part of the gang has started"
            waiting = [c for one in pods for c in (one.get("status") or {}).get("conditions") or ()]
            return sum(c["type"] == "PodScheduled" and c["status"] == "False" for c in waiting) == 6

        await until(all_wait, "the pods of the gang have no reason")
        for name in ("a", "b", "c"):
            await client.create(NODE, node(name, "4"))

        async def all_bound() -> bool:
            return len([one for one in await client.list(POD, "default") if one["spec"].get("nodeName")]) == 6

        await until(all_bound, "the gang is not bound")
