"""Queue admission by scheduling gates: the scheduler removes Volcano's gate when the queue has capacity."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cluster import cluster, pods_of, until
from volcano_py.api.kinds import JOB, QUEUE
from volcano_py.api.names import QUEUE_ALLOCATION_GATE
from volcano_py.kube.client import Client

GATES = ("--feature-gates", "SchedulingGatesQueueAdmission=true")
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def gated(name: str) -> dict[str, object]:
    """A Job of one pod that asks for queue admission, as the webhook leaves it."""
    pod = {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": QUEUE_ALLOCATION_GATE}],
        "containers": [
            {"name": "main", "image": "busybox", "command": ["sleep", "600"], "resources": {"requests": {"cpu": "1"}}}
        ],
    }
    template = {"metadata": {"annotations": {QUEUE_ALLOCATION_GATE: "true"}}, "spec": pod}
    task = {"name": "main", "replicas": 1, "template": template}
    spec = {"minAvailable": 1, "schedulerName": "volcano", "queue": "narrow", "tasks": [task]}
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


async def _state(client: Client, name: str) -> tuple[int, str]:
    """How many gates the Job's pod has, and its node."""
    pods = await pods_of(client, name)
    if not pods:
        return -1, ""
    return len(pods[0]["spec"].get("schedulingGates") or ()), str(pods[0]["spec"].get("nodeName") or "")


async def test_the_gate_is_removed_when_the_queue_has_capacity(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    arguments = (*GATES, "--scheduler-conf", str(conf), "--scheduler-configmap", "")
    async with cluster(tmp_path, nodes=1, shape="cpu=8,memory=8Gi", scheduler=arguments) as (_, client):
        spec = {"capability": {"cpu": "1"}}
        await client.create(
            QUEUE, {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "narrow"}, "spec": spec}
        )
        await until(lambda: _open(client), "the queue is not opened")
        await client.create(JOB, gated("first"), "default")

        async def placed(name: str) -> bool:
            gates, node = await _state(client, name)
            return gates == 0 and bool(node)

        await until(lambda: placed("first"), "the gate of the first pod was not removed, or the pod was not bound")
        await client.create(JOB, gated("second"), "default")
        await until(lambda: _exists(client, "second"), "the second Job has no PodGroup")
        assert await _state(client, "second") in ((-1, ""), (1, "")), "the queue is full, but the gate was removed"
        await client.delete(JOB, "first", "default")
        await until(lambda: placed("second"), "the gate of the second pod was not removed when the queue had capacity")


async def _open(client: Client) -> bool:
    return ((await client.get(QUEUE, "narrow")).get("status") or {}).get("state") == "Open"


async def _exists(client: Client, name: str) -> bool:
    found = await client.get(JOB, name, "default")
    return bool((found.get("status") or {}).get("state"))
