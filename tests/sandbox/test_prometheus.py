"""The load of nodes as Prometheus serves it, read by the scheduler's own source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp

from tests import waiting
from volcano_py.api.resource_types import NODE, POD
from volcano_py.kube import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse
from volcano_py.scheduler.remote.usage_source import measure


def pod(name: str, node: str, **annotations: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    meta = {"name": name, "annotations": {f"sandbox/{key}-usage": value for key, value in annotations.items()}}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [container]}}


async def test_the_load_is_that_of_running_pods_or_stated(tmp_path: Path) -> None:
    async with (
        Sandbox(3, node_shapes=[parse("cpu=4,memory=8Gi")], path=tmp_path / "kubeconfig", prometheus_port=0) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
        aiohttp.ClientSession() as session,
    ):
        assert sandbox.prometheus is not None
        address = f"http://127.0.0.1:{sandbox.prometheus.port}"
        for found in (pod("a", "node-0"), pod("b", "node-0", cpu="1500m", memory="none"), pod("c", "node-1", cpu="4")):
            await client.create(POD, found, "default")
        load = {"sandbox/cpu-load": "95", "sandbox/memory-load": "12.5"}
        await client.patch(NODE, "node-2", {"metadata": {"annotations": load}})

        async def percentages() -> dict[str, tuple[float, float]]:
            names = ["node-0", "node-1", "node-2", "node-7"]
            settings = {"type": "prometheus", "address": address}
            usage, problem = await measure(session, client, settings, names)
            assert not problem
            return {name: (of.cpu, of.memory) for name, of in usage.items()}

        expected = {"node-0": (62.5, 25.0), "node-1": (100.0, 25.0), "node-2": (95.0, 12.5)}

        async def measured() -> bool:
            return await percentages() == expected

        await waiting.until(measured, "the load is another")
        async with session.get(f"{address}/api/v1/query", params={"query": "up"}) as answer:
            assert answer.status == 400 and (await answer.json())["errorType"] == "bad_data"
        async with session.post(
            f"{address}/api/v1/query", data={"query": 'node_cpu_seconds_total{instance="node-2"}'}
        ) as a:
            (row,) = (await a.json())["data"]["result"]
            assert row["metric"] == {"instance": "node-2"} and row["value"][1] == "95"
