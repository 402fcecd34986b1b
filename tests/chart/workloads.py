"""A cluster in use: the objects of workloads.yaml, and what users do with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

from tests import waiting
from tests.chart.cluster import NAMESPACE, Cluster
from tests.e2e.cluster import kubectl

MANIFESTS = Path(__file__).with_suffix(".yaml")
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
SHARDS = "/apis/shard.volcano.sh/v1alpha1/nodeshards"


async def exercise(at: Cluster) -> None:
    """Create everything, change it and delete it, so that each program sends each of its requests."""
    await _apply(at, "--filename", str(MANIFESTS))
    await _command(at, "Queue", "team", "CloseQueue", "scheduling.volcano.sh/v1beta1")
    await _discovery(at)
    await _shards(at)
    await _configuration(at)

    await _phase(at, "plugins", "Running")
    scale = {"spec": {"minAvailable": 2, "tasks": [{**(await _job(at, "plugins"))["spec"]["tasks"][0], "replicas": 2}]}}
    await at.api.ok("PATCH", f"{JOBS}/plugins", scale, MERGE)
    await _until(lambda: _pods(at, "plugins", 2), "the Job was not scaled")
    await _command(at, "Job", "plugins", "AbortJob", "batch.volcano.sh/v1alpha1")
    await _phase(at, "plugins", "Aborted")

    await _gone(at, f"{JOBS}/short-lived")
    flows = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows/flow"
    await _until(lambda: _is(at, flows, "Succeed"), "the JobFlow did not succeed")
    for path in (
        "/apis/apps/v1/namespaces/default/deployments/web",
        "/apis/apps/v1/namespaces/default/statefulsets/store",
    ):
        await _until(lambda path=path: _ready(at, path), f"{path} is not ready")  # type: ignore[misc]
    await _until(lambda: _bound(at, "gated"), "the pod with a gate was not bound")
    await _until(lambda: _bound(at, "with-volume"), "the pod with a volume was not bound")
    await _until(lambda: _bound(at, "member"), "the member of a native gang was not bound")
    await _until(lambda: _bound(at, "with-device"), "the pod with a device was not bound")
    await _until(lambda: _bound(at, "with-extended-resource"), "the pod with an extended resource was not bound")
    await _preempt(at)
    await at.api.ok("DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
    await _until(lambda: _scheduled(at), "the CronJob made no Job")


async def _preempt(at: Cluster) -> None:
    filler = await _job(at, "filler")
    container = filler["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container = {**container, "resources": {"requests": {"cpu": "6"}}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    urgent = {
        "apiVersion": filler["apiVersion"],
        "kind": "Job",
        "metadata": {"name": "urgent"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 1,
            "priorityClassName": "urgent",
            "tasks": [{"name": "main", "replicas": 1, "template": {"spec": spec}}],
        },
    }
    await at.api.ok("POST", JOBS, urgent)
    await _phase(at, "urgent", "Running")


async def _configuration(at: Cluster) -> None:
    """Change the scheduler's configuration twice; each version is kept for a restart. Between the changes, the
    ConfigMap in which it is kept is deleted.
    """
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/volcano-scheduler-configmap"
    data: dict[str, str] = (await at.api.ok("GET", path))["data"]
    ((key, text),) = data.items()
    await _kept(at, path, key, f"{text}\n# changed\n")
    await at.api.ok("DELETE", f"{path}-last-valid")
    await _kept(at, path, key, f"{text}\n# changed again\n")


async def _kept(at: Cluster, path: str, key: str, text: str) -> None:
    """Write this configuration, and wait until it is kept."""
    await at.api.ok("PATCH", path, {"data": {key: text}}, MERGE)

    async def kept() -> bool:
        status, found = await at.api.call("GET", f"{path}-last-valid")
        return status == 200 and text in (found.get("data") or {}).values()

    await _until(kept, "the last valid configuration is not kept")


async def _discovery(at: Cluster) -> None:
    """HyperNodes by labels: created, changed and deleted."""
    for node, rack in (("node-0", "a"), ("node-1", "b"), ("node-2", "b"), ("node-2", "a"), ("node-1", None)):
        await at.api.ok("PATCH", f"{NODES}/{node}", {"metadata": {"labels": {"example.com/rack": rack}}}, MERGE)
        await _until(lambda: _racks(at), "HyperNodes do not follow the labels")


async def _racks(at: Cluster) -> bool:
    """Whether there is a HyperNode for each rack, with its nodes."""
    nodes = (await at.api.ok("GET", NODES))["items"]
    wanted: dict[str, set[str]] = {}
    for node in nodes:
        if rack := node["metadata"]["labels"].get("example.com/rack"):
            wanted.setdefault(rack, set()).add(node["metadata"]["name"])
    found = (await at.api.ok("GET", HYPERNODES))["items"]
    members = [
        {row["selector"]["exactMatch"]["name"] for row in one["spec"]["members"]}
        for one in found
        if one["spec"]["tier"] == 1
    ]
    return sorted(map(sorted, members)) == sorted(map(sorted, wanted.values()))


async def _shards(at: Cluster) -> None:
    """A shard, another one in its place, and the first one again."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/volcano-sharding-configmap"
    for name in ("volcano", "other", "volcano"):
        policy = {"name": "allocation-rate", "arguments": {"maxCPUUtil": 1}}
        text = yaml.safe_dump({"schedulerConfigs": [{"name": name, "policies": [policy]}]})
        await at.api.ok("PATCH", path, {"data": {"sharding.yaml": text}}, MERGE)
        await _until(lambda name=name: _shard(at, name), f"NodeShard {name} has no nodes")  # type: ignore[misc]


async def _shard(at: Cluster, name: str) -> bool:
    found = {shard["metadata"]["name"]: shard for shard in (await at.api.ok("GET", SHARDS))["items"]}
    return list(found) == [name] and bool(found[name]["spec"].get("nodesDesired"))


async def _apply(at: Cluster, *arguments: str) -> None:
    code, _, errors = await kubectl(at.sandbox, at.folder, "apply", *arguments)
    assert code == 0, errors


async def _command(at: Cluster, kind: str, name: str, action: str, version: str) -> None:
    path = f"{JOBS}/{name}" if kind == "Job" else f"/apis/{version}/queues/{name}"
    owner = await at.api.ok("GET", path)
    target = {"apiVersion": version, "kind": kind, "name": name, "uid": owner["metadata"]["uid"], "controller": True}
    await at.api.ok(
        "POST",
        COMMANDS,
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": "command-", "ownerReferences": [target]},
            "action": action,
            "target": target,
        },
    )


async def _job(at: Cluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = await at.api.ok("GET", f"{JOBS}/{name}")
    return found


async def _phase(at: Cluster, name: str, phase: str) -> None:
    await _until(lambda: _is(at, f"{JOBS}/{name}", phase), f"Job {name} is not {phase}")


async def _is(at: Cluster, path: str, phase: str) -> bool:
    found = await at.api.ok("GET", path)
    return bool(((found.get("status") or {}).get("state") or {}).get("phase") == phase)


async def _ready(at: Cluster, path: str) -> bool:
    found = await at.api.ok("GET", path)
    return bool((found.get("status") or {}).get("readyReplicas"))


async def _pods(at: Cluster, name: str, count: int) -> bool:
    found = await at.api.ok("GET", f"/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name={name}")
    return sum(1 for pod in found["items"] if pod["status"]["phase"] == "Running") == count


async def _bound(at: Cluster, name: str) -> bool:
    return bool((await at.api.ok("GET", f"/api/v1/namespaces/default/pods/{name}"))["spec"].get("nodeName"))


async def _gone(at: Cluster, path: str) -> None:
    async def missing() -> bool:
        return (await at.api.call("GET", path))[0] == 404

    await _until(missing, f"{path} is still there")


async def _scheduled(at: Cluster) -> bool:
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs/every-minute"
    return bool(((await at.api.ok("GET", path)).get("status") or {}).get("lastScheduleTime"))


async def _until(holds: Callable[[], Awaitable[Any]], otherwise: str) -> None:
    await waiting.until(holds, otherwise, 1.5)
