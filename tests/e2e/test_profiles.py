"""Profiles beside the session in one scheduler process: gangs, two profiles, and preemption."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.cluster import SERVE_METRICS, bound, cluster, job, metrics_of, until
from volcano_py.api.kinds import EVENT, JOB, POD, PRIORITYCLASS, STATEFULSET
from volcano_py.kube.client import Client

CONFIG = Path(__file__).parents[2] / "examples" / "profiles" / "scheduler.conf"
FLAGS = (f"--config={CONFIG}", *SERVE_METRICS)


def pod(name: str, profile: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": profile, "restartPolicy": "Never", "containers": [container], **spec},
    }


async def nodes(client: Client, prefix: str) -> list[str]:
    """The nodes of the pods whose names begin so, "" for one that is not bound."""
    found = [p for p in await client.list(POD, "default") if p["metadata"]["name"].startswith(prefix)]
    return [p["spec"].get("nodeName", "") for p in found]


async def test_gangs_and_two_profiles_at_once(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=4, shape="cpu=8,memory=16Gi", scheduler=FLAGS) as (sandbox, client):
        for i in range(3):
            await client.create(JOB, job(f"gang-{i}", 4, "1", seconds=3600), "default")
            for j in range(4):
                await client.create(POD, pod(f"spread-{i}-{j}", "spread", "500m"), "default")
            await client.create(POD, pod(f"packed-{i}", "packed", "500m"), "default")

        async def all_bound() -> bool:
            gangs = [await bound(client, f"gang-{i}") for i in range(3)]
            return gangs == [4, 4, 4] and all([*await nodes(client, "spread-"), *await nodes(client, "packed-")])

        await until(all_bound, "not everything is bound")
        used: Counter[str] = Counter()
        for p in await client.list(POD, "default"):
            cpu = p["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            used[p["spec"]["nodeName"]] += 500 if cpu == "500m" else 1000
        assert max(used.values()) <= 8000
        assert len(set(await nodes(client, "packed-"))) == 1
        found = await metrics_of(sandbox)
        assert found['scheduler_schedule_attempts_total{profile="spread",result="scheduled"}'] == 12
        assert found['scheduler_schedule_attempts_total{profile="packed",result="scheduled"}'] == 3
        assert found['scheduler_pending_pods{queue="active"}'] == 0
        assert found['scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"}'] == 15
        assert found['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}'] == 15


async def test_a_profile_preempts_a_whole_pod_of_the_session_and_nothing_takes_its_place(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=2,memory=8Gi", scheduler=FLAGS) as (_, client):
        await client.create(PRIORITYCLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        await client.create(JOB, job("filler", 2, "1", seconds=3600, minimum=1), "default")

        async def filled() -> bool:
            return await bound(client, "filler") == 2

        await until(filled, "the job does not run")
        await client.create(POD, pod("urgent", "packed", "1", priorityClassName="urgent"), "default")

        async def runs() -> bool:
            return all(await nodes(client, "urgent"))

        await until(runs, "the important pod is not bound")
        assert await bound(client, "filler") == 1

        async def preempted() -> list[str]:
            return [e["message"] for e in await client.list(EVENT, "default") if e["reason"] == "Preempted"]

        (message,) = await until(preempted, "there is no Event")
        assert message.startswith("Preempted by pod") and message.endswith("on node node-0")


STICKY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: sticky
  plugins: {multiPoint: {enabled: [{name: Sticky}]}}
  pluginConfig:
  - name: Sticky
    args: {owners: [{apiVersion: apps/v1, kind: StatefulSet}]}
"""


async def test_a_plugin_reads_and_patches_objects_of_its_own(tmp_path: Path) -> None:
    config = tmp_path / "profiles.yaml"
    config.write_text(STICKY)
    async with cluster(tmp_path, nodes=3, shape="cpu=4,memory=8Gi", scheduler=(f"--config={config}",)) as (_, client):
        spec = {"selector": {"matchLabels": {"app": "a"}}, "serviceName": "a", "replicas": 0}
        template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}
        owner = await client.create(
            STATEFULSET, {"metadata": {"name": "a"}, "spec": {**spec, "template": template}}, "default"
        )
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": owner["metadata"]["uid"]}

        async def run(name: str) -> str:
            made = pod(name, "sticky", "1")
            made["metadata"]["ownerReferences"] = [reference]
            await client.create(POD, made, "default")

            async def bound_to() -> list[str]:
                return [n for n in await nodes(client, name) if n]

            (node,) = await until(bound_to, f"{name} is not bound")
            return str(node)

        async def remembered() -> str:
            annotations = (await client.get(STATEFULSET, "a", "default"))["metadata"].get("annotations") or {}
            return str(annotations.get("volcano.sh/sticky-node", ""))

        first = await run("a-first")
        assert await until(remembered, "the owner has no annotation") == first
        await client.create(POD, pod("beside", "sticky", "500m", nodeName=first), "default")
        assert await run("a-second") == first, "it is not the emptiest node"
