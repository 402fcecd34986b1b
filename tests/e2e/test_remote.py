"""A metrics source, an extender and node locks with the real scheduler on a sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import cluster, job, log_of, nodes_of, phase_of, pods_of, until
from volcano_py.api.kinds import JOB, NODE

SERVER = Path(__file__).parents[1] / "faults" / "remote_server.py"


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of a program that answers as Prometheus and as extender."""
    process = subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def configured(tmp_path: Path, plugin: str, arguments: dict[str, Any], **more: Any) -> tuple[str, ...]:
    """The scheduler's options for a configuration with one more plugin."""
    plugins = [{"name": "predicates"}, {"name": plugin, "arguments": arguments}, {"name": "nodeorder"}]
    tiers = [{"plugins": [{"name": "priority"}, {"name": "gang"}]}, {"plugins": plugins}]
    conf = tmp_path / "scheduler.conf"
    conf.write_text(json.dumps({"actions": "enqueue, allocate, backfill", "tiers": tiers, **more}))
    return ("--scheduler-conf", str(conf))


async def test_pods_avoid_a_busy_node(tmp_path: Path, server: str) -> None:
    source = {"type": "prometheus", "address": f"{server}/good", "interval": "1s"}
    options = configured(tmp_path, "usage", {}, metrics=source)
    async with cluster(tmp_path, nodes=2, shape="cpu=4,memory=8Gi", scheduler=options) as (_, client):
        names = (f"job-{i}" for i in range(1000))

        async def all_on_the_other_node() -> bool:
            """Without the plugin the two pods are on two nodes."""
            name = next(names)
            await client.create(JOB, job(name, 2, "1", seconds=1), "default")

            async def bound() -> list[str]:
                nodes = await nodes_of(client, name)
                return nodes if len(nodes) == 2 and all(nodes) else []

            return await until(bound, f"{name} is not bound") == ["node-1", "node-1"]

        await until(all_on_the_other_node, "pods are still put on the busy node")


@pytest.mark.parametrize("how", ["good", "hang", pytest.param("invalid", marks=pytest.mark.slow)])
async def test_jobs_run_with_an_extender_that_may_be_ignored(tmp_path: Path, server: str, how: str) -> None:
    arguments = {
        "extender.urlPrefix": f"{server}/{how}",
        "extender.httpTimeout": "200ms",
        "extender.predicateVerb": "predicate",
        "extender.prioritizeVerb": "prioritize",
        "extender.ignorable": True,
    }
    options = configured(tmp_path, "extender", arguments)
    async with cluster(tmp_path, nodes=2, scheduler=options) as (sandbox, client):
        await client.create(JOB, job("gang", 3, "1", seconds=1), "default")

        async def completed() -> bool:
            return await phase_of(client, "gang") == "Completed"

        await until(completed, "the job does not complete")
        assert ("WARNING scheduler: extender" in log_of(sandbox, "scheduler")) is (how != "good")


async def test_a_node_that_is_locked_takes_one_pod_after_the_other(tmp_path: Path) -> None:
    arguments = {"deviceshare.VGPUEnable": True, "deviceshare.NodeLockEnable": True}
    options = configured(tmp_path, "deviceshare", arguments)
    shape = "cpu=8,memory=8Gi,vgpu=1:A100:40Gi"
    async with cluster(tmp_path, nodes=1, shape=shape, scheduler=options) as (_, client):
        manifest = job("gpus", 3, "1", seconds=600, minimum=1)
        container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
        container["resources"]["limits"] = {"volcano.sh/vgpu-memory": "10000"}
        await client.create(JOB, manifest, "default")

        async def running() -> bool:
            return [p["status"].get("phase") for p in await pods_of(client, "gpus")] == ["Running"] * 3

        await until(running, "the pods do not run")
        annotations = (await client.get(NODE, "node-0"))["metadata"]["annotations"]
        assert "hamivgpu" not in annotations, "the lock was not removed"
        given = [p["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"] for p in await pods_of(client, "gpus")]
        assert given == ["GPU-node-0-0,NVIDIA,10000,0:"] * 3
