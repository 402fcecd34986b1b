"""A sandbox with 50,000 pods: its memory, lists whole and by pages, and events for several watchers at once."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable

from benchmarks.cluster import Cluster, Manifest, cluster, pod, rate, until_running
from volcano_py.api.kinds import NODE, POD
from volcano_py.kube import wire

PODS = 50_000
WATCHERS = 4
EVENTS = 10_000
PAGE = 500
NODES = 1000


def placed(i: int, nodes: list[str]) -> Manifest:
    """A pod that starts as soon as it is there."""
    made = pod(i)
    made["spec"]["nodeName"] = nodes[i % len(nodes)]
    return made


async def crowded(pods: int) -> dict[str, float]:
    """All figures of one large cluster."""
    async with cluster(NODES, "none") as c:
        names = [node["metadata"]["name"] for node in await c.client.list(NODE)]
        await rate(pods, lambda i: c.client.create(POD, placed(i, names)))
        await until_running(c.client, pods)
        out = {"large_mib": c.memory(), "list_s": statistics.median([await listed(c, pods) for _ in range(3)])}
        out |= await paged(c, pods)
        out["deliveries_per_s"] = await deliveries(c)
        return out


async def listed(c: Cluster, pods: int) -> float:
    """Seconds until the whole list is there."""
    begun = time.perf_counter()
    body = await c.client.raw("GET", POD.path(None), timeout=60)
    took = time.perf_counter() - begun
    assert body.count(b'"nodeName":') == pods
    return took


async def paged(c: Cluster, pods: int) -> dict[str, float]:
    """The list by pages, and the longest wait of another client for a small answer meanwhile."""
    waits = [0.0]

    async def ask() -> None:
        while True:
            begun = time.perf_counter()
            await c.client.raw("GET", "/api/v1/namespaces/default")
            waits.append(time.perf_counter() - begun)
            await asyncio.sleep(0.002)

    asking = asyncio.create_task(ask())
    begun = time.perf_counter()
    found, query = 0, {"limit": str(PAGE)}
    while query.get("continue", "first"):
        body = await c.client.raw("GET", POD.path(None), params=query)
        found += body.count(b'"nodeName":')
        query["continue"] = wire.continue_token(body) or ""
    took = time.perf_counter() - begun
    asking.cancel()
    assert found == pods, found
    return {"paged_s": took, "paged_stall_ms": max(waits) * 1000}


async def deliveries(c: Cluster) -> float:
    """Events a second, summed over the watchers, from the first write to the last event that arrives."""
    path = "/api/v1/namespaces/default/configmaps"

    def create(i: int) -> Awaitable[object]:
        body = {"metadata": {"name": f"c-{i:05d}"}, "data": {"text": "x" * 1000}}
        return c.client.raw("POST", path, body=wire.dumps(body))

    await rate(EVENTS, create)
    revision = wire.decode_list(await c.client.raw("GET", path, params={"limit": 1}), None).resource_version
    counts = [0] * WATCHERS

    async def watch(index: int) -> None:
        query = {"watch": "true", "resourceVersion": revision}
        async with c.client.stream(path, query) as content:
            async for chunk in content.iter_any():
                counts[index] += chunk.count(b"\n")
                if counts[index] >= EVENTS:
                    return

    watchers = [asyncio.create_task(watch(index)) for index in range(WATCHERS)]
    await asyncio.sleep(0.5)
    begun = time.perf_counter()
    removal = asyncio.create_task(c.client.raw("DELETE", path, timeout=60))
    await asyncio.gather(*watchers)
    took = time.perf_counter() - begun
    await removal
    return EVENTS * WATCHERS / took
