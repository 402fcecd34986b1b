"""What users do every day, on a cluster with all components: suspend and resume, pods that cannot be created, a pod
whose PodGroup is missing, Deployments with annotations."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Manifest, cluster, job, phase_of, until
from volcano_py.api.kinds import DEPLOYMENT, EVENT, JOB, POD, PODGROUP, PRIORITYCLASS, QUEUE
from volcano_py.cli import job_commands
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

QUEUE_OF, LEAST = "scheduling.volcano.sh/queue-name", "scheduling.volcano.sh/group-min-member"


async def reason_of(client: Client, name: str) -> tuple[str, str]:
    state = ((await client.get(JOB, name, "default")).get("status") or {}).get("state") or {}
    return state.get("reason", ""), state.get("message", "")


async def groups_of(client: Client, owner: str) -> list[Manifest]:
    found = await client.list(PODGROUP, "default")
    return [
        group
        for group in found
        if any(one["name"].startswith(owner) for one in group["metadata"].get("ownerReferences") or ())
    ]


async def explained(sandbox: Sandbox, name: str) -> str:
    """The output of `volcano-py explain`."""
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "volcano_py.cli.vcctl",
            "explain",
            "job",
            name,
            "--kubeconfig",
            str(sandbox.kubeconfig),
        ),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return " ".join(out.decode().split())


async def test_suspending_creating_and_missing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (sandbox, client):
        await client.create(JOB, job("napper", 1, "100m", seconds=900), "default")
        for _ in range(5):
            await until(lambda: _is(client, "napper", "Running"), "napper does not run")
            await job_commands.suspend(client, "default", "napper")
            await until(lambda: _is(client, "napper", "Aborted"), "napper is not suspended")
            await job_commands.resume(client, "default", "napper")
        await until(lambda: _is(client, "napper", "Running"), "napper does not run")
        assert ((await client.get(JOB, "napper", "default"))["status"]).get("retryCount", 0) == 0

        noprio = job("noprio", 1, "100m", seconds=900)
        noprio["spec"]["priorityClassName"] = "urgent"
        await client.create(JOB, noprio, "default")

        async def rejected() -> Any:
            reason, message = await reason_of(client, "noprio")
            [group] = await groups_of(client, "noprio") or [{}]
            conditions = (group.get("status") or {}).get("conditions") or ()
            stated = [one["message"] for one in conditions if one["type"] == "FailedCreate"]
            return reason == "FailedCreate" and "no PriorityClass with name urgent" in message and stated == [message]

        await until(rejected, "the Job is not FailedCreate")
        events = [one["message"] for one in await client.list(EVENT, "default") if one["reason"] == "FailedCreate"]
        assert any("no PriorityClass with name urgent" in text for text in events)
        assert "The pods cannot be created: " in (text := await explained(sandbox, "noprio")), text
        assert "no PriorityClass with name urgent" in text and "suspend" not in text
        await client.create(PRIORITYCLASS, {"metadata": {"name": "urgent"}, "value": 7})
        await until(lambda: _is(client, "noprio", "Running"), "noprio does not run")

        lost: Manifest = {
            "metadata": {"name": "lost", "annotations": {"scheduling.k8s.io/group-name": "not-there"}},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "busybox"}]},
        }
        await client.create(POD, lost, "default")

        async def reported() -> bool:
            found = await client.get(POD, "lost", "default")
            texts = [one.get("message", "") for one in (found.get("status") or {}).get("conditions") or ()]
            events = [one for one in await client.list(EVENT, "default") if one["involvedObject"]["name"] == "lost"]
            named = "PodGroup default/not-there, which does not exist"
            return any(named in text for text in texts) and any(named in one["message"] for one in events)

        await until(reported, "the missing PodGroup is not reported")


async def _is(client: Client, name: str, phase: str) -> bool:
    return await phase_of(client, name) == phase


async def test_a_deployment_in_a_queue_is_rolled_out_with_a_minimum(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, client):
        await client.create(QUEUE, {"metadata": {"name": "team"}, "spec": {"weight": 1}})
        container = {"name": "c", "image": "busybox:1", "resources": {"requests": {"cpu": "100m"}}}
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"schedulerName": "volcano", "containers": [container]},
        }
        body: Manifest = {
            "metadata": {"name": "web", "annotations": {QUEUE_OF: "team", LEAST: "3"}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        }
        await client.create(DEPLOYMENT, body, "default")

        async def rolled_out(image: str) -> bool:
            pods = await client.list(POD, "default", label_selector="app=web")
            running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
            return len(pods) == len(running) == 3 and all(
                pod["spec"]["containers"][0]["image"] == image for pod in running
            )

        await until(lambda: rolled_out("busybox:1"), "the Deployment does not run")
        assert {group["spec"]["queue"] for group in await groups_of(client, "web")} == {"team"}
        newer = {"spec": {"template": {"spec": {"containers": [container | {"image": "busybox:2"}]}}}}
        await client.patch(DEPLOYMENT, "web", newer, "default", patch_type="strategic")
        await until(lambda: rolled_out("busybox:2"), "the rolling update hangs")
