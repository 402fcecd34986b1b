"""kube-scheduler's extender webhooks on the live scheduler: a program of its own process, with faults at each verb."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.cluster import cluster, until
from tests.e2e.test_profiles import nodes, pod
from volcano_py.api.kinds import EVENT, POD, PRIORITYCLASS
from volcano_py.kube.client import Client

ROOT = Path(__file__).parents[2]
FAULTS = ("500", "hang", "garbage", "lie")
"""A lie names a node or a victim that does not exist, a score out of range, or is of another form."""


@asynccontextmanager
async def extender(tmp_path: Path) -> AsyncIterator[str]:
    """The program; gives its URL."""
    arguments = ("-m", "tests.e2e.extender_server", str(tmp_path / "kubeconfig"), str(tmp_path / "calls"))
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.terminate()
        await process.wait()


def entry(url: str, name: str, **fields: Any) -> dict[str, Any]:
    """An extender for the pods that ask for its resource."""
    return {
        "urlPrefix": f"{url}/{name}",
        **{f"{v}Verb": v for v in ("filter", "prioritize", "preempt")},
        "weight": 100,
        "httpTimeout": "1s",
        "managedResources": [{"name": f"example.com/{name}", "ignoredByScheduler": True}],
        **fields,
    }


def asking(name: str, extender: str, cpu: str = "10m", **spec: Any) -> dict[str, Any]:
    made = pod(name, "extended", cpu, **spec)
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = {f"example.com/{extender}": "1"}
    resources["requests"][f"example.com/{extender}"] = "1"
    return made


def calls(tmp_path: Path) -> set[str]:
    path = tmp_path / "calls"
    return set(path.read_text().splitlines()) if path.exists() else set()


async def test_a_fault_at_any_verb_is_an_error_for_its_pod(tmp_path: Path) -> None:
    async with extender(tmp_path) as url:
        strict = entry(url, "strict", bindVerb="bind", nodeCacheCapable=True)
        soft = entry(url, "soft", ignorable=True)
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "extended"}],
            "extenders": [strict, soft],
        }
        (tmp_path / "profiles.yaml").write_text(yaml.safe_dump(config))
        flags = (f"--config={tmp_path / 'profiles.yaml'}",)
        async with cluster(tmp_path, nodes=2, shape="cpu=4,memory=8Gi", scheduler=flags) as (_, client):
            await _go_through(client, tmp_path, url)


async def _go_through(client: Client, tmp_path: Path, url: str) -> None:
    async def placed(*names: str) -> bool:
        return all([all(await nodes(client, name)) for name in names])

    async def message(name: str) -> str:
        conditions = (await client.get(POD, name, "default")).get("status", {}).get("conditions") or ()
        return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")

    await client.create(PRIORITYCLASS, {"metadata": {"name": "urgent"}, "value": 1000})
    await client.create(POD, pod("plain", "extended", "10m"), "default")
    await until(lambda: placed("plain"), "a pod that no extender manages is not bound")
    assert calls(tmp_path) == set()
    await client.create(POD, asking("good-1", "strict"), "default")
    await client.create(POD, asking("good-2", "soft"), "default")
    await until(lambda: placed("good-1", "good-2"), "honest answers bind nothing")
    assert await nodes(client, "good-") == ["node-1", "node-1"]
    strict = {"strict filter good-1 names", "strict prioritize good-1 names", "strict bind good-1 -"}
    assert calls(tmp_path) == strict | {"soft filter good-2 objects", "soft prioritize good-2 objects"}

    for name in ("weak-1", "weak-2"):
        await client.create(POD, pod(name, "extended", "3"), "default")
    await until(lambda: placed("weak-"), "the nodes are not filled")
    for fault in FAULTS:
        for verb in ("filter", "prioritize", "bind"):
            await client.create(POD, asking(f"{verb}-{fault}-strict", "strict"), "default")
        for verb in ("filter", "prioritize"):
            await client.create(POD, asking(f"{verb}-{fault}-soft", "soft"), "default")
        await client.create(POD, urgent(f"preempt-{fault}-strict", "strict"), "default")
    errors = {
        "filter": 'running Filter plugin "extender',
        "prioritize": "the score 500 of node-0 is outside of 0 to 10",
        "preempt": 'running PostFilter plugin "DefaultPreemption"',
        "bind": 'running Bind plugin "extender',
    }
    for fault in FAULTS:
        for verb, text in errors.items():
            name = f"{verb}-{fault}-strict"
            if verb == "prioritize" and fault != "lie":  # as in Kubernetes: nodes are scored without it
                await until(lambda n=name: placed(n), f"{name} is not bound")
                continue
            assert text in await until(lambda n=name: message(n), f"{name} has no error")
            assert await nodes(client, name) == [""]
        both = (f"filter-{fault}-soft", f"prioritize-{fault}-soft")
        await until(lambda names=both: placed(*names), "an extender that may fail fails a pod")
    assert all(await nodes(client, "weak-")), "a failed extender has evicted a pod"

    failures = {
        e["involvedObject"]["name"] for e in await client.list(EVENT, "default") if e["reason"] == "FailedScheduling"
    }
    assert failures >= {f"{verb}-{fault}-strict" for verb in ("filter", "preempt", "bind") for fault in FAULTS}

    for p in await client.list(POD, "default"):
        if p["metadata"]["name"].startswith("preempt-"):
            await client.delete(POD, p["metadata"]["name"], "default")
    await client.create(POD, urgent("good-3", "strict"), "default")
    await until(lambda: placed("good-3"), "nothing is evicted for an honest answer")
    assert await nodes(client, "good-3") == ["node-1"]
    await client.create(POD, urgent("preempt-500-soft", "soft"), "default")
    await until(lambda: placed("preempt-500-soft"), "an extender that may fail stops a preemption")
    assert await nodes(client, "weak-") == []


def urgent(name: str, extender: str) -> dict[str, Any]:
    """A pod that fits on no node without an eviction."""
    return asking(name, extender, "3", priorityClassName="urgent")
