"""All controllers together: a large Deployment in a short time, and a cluster that comes back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, http
from tests.sandbox.controllers.objects import APPS, BATCH, workload
from tests.sandbox.controllers.test_job import ended, job
from volcano_py.sandbox.cluster import Sandbox

WEB = APPS + "/deployments/web"


async def test_a_thousand_pods_without_delays_for_others() -> None:
    async with Sandbox(nodes=10, crds=False) as sandbox, http(sandbox) as api:
        await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 1000))
        slowest = 0.0
        async with waiting.limit("1000 replicas are not available"):
            while (await api.ok("GET", WEB))["status"].get("availableReplicas") != 1000:
                sent = time.thread_time()  # unlike wall-clock time it does not depend on what else the machine does
                await api.ok("GET", "/api/v1/namespaces/default")
                slowest = max(slowest, time.thread_time() - sent)
                await asyncio.sleep(0.01)
        assert slowest < 0.5
        await api.ok("PATCH", WEB, {"spec": {"replicas": 0}}, MERGE)
        await api.until(PODS + "?limit=1", lambda v: not v["items"])


async def test_work_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with Sandbox(nodes=1, crds=False, data=tmp_path) as sandbox, http(sandbox) as api:
        await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 2))
        await api.ok("POST", BATCH + "/jobs", job("sleep 1", completions=2))
        await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 2)
        await api.until(BATCH + "/jobs/once", lambda v: v["status"].get("ready") == 1)
        before = {row["metadata"]["uid"] for row in (await api.ok("GET", PODS))["items"]}
    async with Sandbox(nodes=1, crds=False, data=tmp_path) as sandbox, http(sandbox) as api:
        done = await api.until(BATCH + "/jobs/once", ended("Complete"))
        assert done["status"]["succeeded"] == 2
        await api.ok("PATCH", WEB, {"spec": {"replicas": 3}}, MERGE)
        await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 3)
        after = {row["metadata"]["uid"] for row in (await api.ok("GET", PODS))["items"]}
        assert before < after, "nothing was recreated"
