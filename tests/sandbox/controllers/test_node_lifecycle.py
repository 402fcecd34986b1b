"""Nodes without heartbeats, their taints, and the pods that leave them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http, Kubectl, http, pod
from tests.sandbox.controllers.objects import APPS, workload
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.manager import Options
from volcano_py.sandbox.controllers.node.node_taints import desired_taints, seconds_to_eviction, tolerates
from volcano_py.sandbox.kubelet import kubelet
from volcano_py.sandbox.kubelet.nodes import FAILED

Object = dict[str, Any]
NODES = "/api/v1/nodes"
GRACE = 0.6
NOW = 1767225600.0
THEN = "2026-01-01T00:00:00Z"


def node(taints: list[Object] | None = None, unschedulable: bool = False, **conditions: str) -> Object:
    rows = [{"type": name, "status": value} for name, value in conditions.items()]
    return {"spec": {"taints": taints or [], "unschedulable": unschedulable}, "status": {"conditions": rows}}


OTHER = {"key": "dedicated", "value": "us", "effect": "NoExecute"}
OLD = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2025-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (node(Ready="True"), []),
        (node([OTHER], Ready="True"), [("dedicated", "NoExecute")]),
        (node(Ready="False"), [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]),
        (node(Ready="Unknown"), [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
        (node([OLD], Ready="True"), []),
        (
            node([OTHER, OLD], Ready="False"),
            [("dedicated", "NoExecute"), ("not-ready", "NoSchedule"), ("not-ready", "NoExecute")],
        ),
        (node(MemoryPressure="True", Ready="True"), [("memory-pressure", "NoSchedule")]),
        (node(unschedulable=True), [("unschedulable", "NoSchedule")]),
    ],
)
def test_taints_follow_from_conditions(wanted: Object, expected: list[tuple[str, str]]) -> None:
    rows = desired_taints(wanted, THEN)
    assert [(row["key"].removeprefix("node.kubernetes.io/"), row["effect"]) for row in rows] == expected


def test_a_taint_keeps_its_beginning() -> None:
    rows = desired_taints(node([OLD], Ready="Unknown"), THEN)
    assert [row["timeAdded"] for row in rows] == [THEN, "2025-01-01T00:00:00Z"]


TAINT = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": THEN}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
    ],
)
def test_tolerations(toleration: Object, expected: bool) -> None:
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], 0.0),
        ([{"key": "k", "operator": "Exists"}], None),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 30}], 20.0),  # of which ten have passed
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 5}], 0.0),
        ([{"operator": "Exists"}, {"key": "k", "operator": "Exists", "tolerationSeconds": 15}], 5.0),
    ],
)
def test_how_long_a_pod_stays(tolerations: list[Object], expected: float | None) -> None:
    assert seconds_to_eviction({"spec": {"tolerations": tolerations}}, [TAINT], NOW + 10) == expected


@pytest.fixture
async def short_lived(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[tuple[Http, Kubectl]]:
    """Three nodes whose Leases are renewed five times a second, and a controller that waits three times as long."""
    monkeypatch.setattr(kubelet, "LEASE_PERIOD", GRACE / 3)
    few = Options(node_grace=GRACE, quarantine=0.2)
    async with Sandbox(nodes=3, controllers=few, components=("scheduler",)) as made, http(made) as client:
        yield client, Kubectl(made, tmp_path)


def taints(value: Object) -> list[str]:
    return [
        f"{row['key'].removeprefix('node.kubernetes.io/')}:{row['effect']}" for row in value["spec"].get("taints", [])
    ]


def ready(value: Object) -> str:
    return next(row["status"] for row in value["status"]["conditions"] if row["type"] == "Ready")


async def test_a_lost_node_is_drained_and_comes_back(short_lived: tuple[Http, Kubectl]) -> None:
    api, kubectl = short_lived
    body = workload("Deployment", "web", 4)
    del body["spec"]["template"]["spec"]["nodeName"]
    body["spec"]["template"]["spec"]["tolerations"] = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    ]
    await api.ok("POST", APPS + "/deployments", body)
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    victim = (await api.ok("GET", PODS))["items"][0]["spec"]["nodeName"]
    path = f"{NODES}/{victim}"
    await api.ok("PATCH", path, {"metadata": {"annotations": {FAILED: "true"}}}, MERGE)
    lost = await api.until(path, lambda v: ready(v) == "Unknown" and len(taints(v)) == 2)
    assert taints(lost) == ["unreachable:NoSchedule", "unreachable:NoExecute"]
    row = next(row for row in lost["status"]["conditions"] if row["type"] == "Ready")
    assert row["reason"] == "NodeStatusUnknown" and row["message"] == "Kubelet stopped posting node status."
    assert (await kubectl("get", "node", victim, "--no-headers")).split()[1] == "NotReady"

    def here(value: Object) -> list[Object]:
        return [row for row in value["items"] if row["spec"].get("nodeName") == victim]

    unready = here(await api.ok("GET", PODS))
    assert all(ready(row) == "False" for row in unready)
    going = await api.until(PODS, lambda v: all(row["metadata"].get("deletionTimestamp") for row in here(v)))
    reasons = {row["type"]: row.get("reason") for row in here(going)[0]["status"]["conditions"]}
    assert reasons.get("DisruptionTarget") == "DeletionByTaintManager"
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    assert len(here(await api.ok("GET", PODS))) == len(unready), "no kubelet is there to stop them"

    await api.ok("PATCH", path, {"metadata": {"annotations": {FAILED: None}}}, MERGE)
    back = await api.until(path, lambda v: ready(v) == "True" and not taints(v))
    assert back["metadata"]["name"] == victim
    await api.until(PODS, lambda v: len(v["items"]) == 4 and not here(v))


async def test_late_heartbeats_only_make_pods_unready(short_lived: tuple[Http, Kubectl]) -> None:
    api, _ = short_lived
    await api.ok("POST", PODS, pod("a", nodeName="node-0"))
    await api.until(PODS + "/a", lambda v: v["status"]["phase"] == "Running")
    await api.ok("PATCH", NODES + "/node-0", {"metadata": {"annotations": {FAILED: "true"}}}, MERGE)
    await api.until(PODS + "/a", lambda v: ready(v) == "False")
    await api.ok("PATCH", NODES + "/node-0", {"metadata": {"annotations": {FAILED: None}}}, MERGE)
    await api.until(PODS + "/a", lambda v: ready(v) == "True" and not v["metadata"].get("deletionTimestamp"))
    await api.until(NODES + "/node-0", lambda v: not taints(v))


async def test_nodes_whose_heartbeat_was_late_are_ready_again(short_lived: tuple[Http, Kubectl]) -> None:
    """The whole process was suspended for longer than the grace period: no other process would report the nodes."""
    api, _ = short_lived
    for number in range(3):
        await api.ok("POST", PODS, pod(f"p-{number}", nodeName=f"node-{number}"))
    await api.until(PODS, lambda v: all(row["status"].get("phase") == "Running" for row in v["items"]))
    time.sleep(3 * GRACE)  # the event loop, with the kubelets in it, stands still
    events = "/api/v1/namespaces/default/events?fieldSelector=reason=NodeNotReady"
    await api.until(events, lambda v: v["items"])
    await api.until(NODES, lambda v: all(ready(row) == "True" and not taints(row) for row in v["items"]))
    await api.until(PODS, lambda v: all(ready(row) == "True" for row in v["items"]))
    found = await api.ok("GET", PODS)
    assert len(found["items"]) == 3 and not any(row["metadata"].get("deletionTimestamp") for row in found["items"])


async def test_pods_of_a_removed_node_are_deleted(short_lived: tuple[Http, Kubectl]) -> None:
    api, kubectl = short_lived
    await api.ok("POST", PODS, pod("a", nodeName="node-0"))
    await api.until(PODS + "/a", lambda v: v["status"]["phase"] == "Running")
    await api.ok("PATCH", NODES + "/node-0", {"metadata": {"annotations": {FAILED: "true"}}}, MERGE)
    await api.until(NODES + "/node-0", lambda v: ready(v) == "Unknown")
    await kubectl("delete", "node", "node-0")
    await api.until(PODS + "/a", lambda v: v.get("code") == 404)


async def test_pods_of_a_node_out_of_service_are_deleted(short_lived: tuple[Http, Kubectl]) -> None:
    api, kubectl = short_lived
    await api.ok("POST", APPS + "/statefulsets", workload("StatefulSet", "web", 1))
    first = await api.until(PODS + "/web-0", lambda v: v.get("status", {}).get("phase") == "Running")
    await api.ok("PATCH", NODES + "/node-0", {"metadata": {"annotations": {FAILED: "true"}}}, MERGE)
    await api.until(NODES + "/node-0", lambda v: ready(v) == "Unknown")
    await kubectl("taint", "nodes", "node-0", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    uid = first["metadata"]["uid"]
    await api.until(PODS + "/web-0", lambda v: v.get("metadata", {}).get("uid", uid) != uid)


async def test_cordon_is_a_taint_and_heartbeats_write_no_nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kubelet, "LEASE_PERIOD", 0.1)
    async with Sandbox(nodes=3) as sandbox, http(sandbox) as api:
        kubectl = Kubectl(sandbox, tmp_path)
        await kubectl("cordon", "node-1")
        await api.until(NODES + "/node-1", lambda v: taints(v) == ["unschedulable:NoSchedule"])
        await kubectl("uncordon", "node-1")
        await api.until(NODES + "/node-1", lambda v: not taints(v))
        nodes = sandbox.api.resource("", "nodes").collection
        revision = nodes.history[-1].rv
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"
        for _ in range(3):
            before = (await api.ok("GET", lease))["spec"]["renewTime"]
            await api.until(lease, lambda v, before=before: v["spec"]["renewTime"] != before)
        assert nodes.history[-1].rv == revision
