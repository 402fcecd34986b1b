"""Deployments with the real kubectl and on the wire."""

from __future__ import annotations

import asyncio

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http, Kubectl
from tests.sandbox.controllers.objects import APPS, template, workload
from volcano_py.sandbox.cluster import Sandbox

WEB = APPS + "/deployments/web"
SETS = APPS + "/replicasets"


def writes(sandbox: Sandbox) -> dict[str, int]:
    """The last revision of each resource but the Leases, which kubelets renew."""
    rows = sandbox.api.store.collections.items()
    return {name: row.history[-1].rv for name, row in rows if row.history and not name.startswith("leases")}


async def test_kubectl_rolls_out_scales_and_undoes(scheduled: tuple[Http, Kubectl]) -> None:
    api, kubectl = scheduled
    await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    await kubectl("scale", "deploy/web", "--replicas=5")
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    await kubectl("set", "image", "deploy/web", "nginx=nginx:2")
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    images = ("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    await api.until(PODS, lambda v: len(v["items"]) == 5)
    assert set((await kubectl(*images)).split()) == {"nginx:2"}
    assert "Image:\tnginx:1" in " ".join((await kubectl("rollout", "history", "deploy/web", "--revision=1")).split(" "))

    await kubectl("rollout", "undo", "deploy/web")
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    await api.until(PODS, lambda v: len(v["items"]) == 5)
    assert set((await kubectl(*images)).split()) == {"nginx:1"}
    history = [line.split()[0] for line in (await kubectl("rollout", "history", "deploy/web")).splitlines()[2:] if line]
    assert history == ["2", "3"], "the first template is the third revision now"
    assert len((await api.ok("GET", SETS))["items"]) == 2
    await kubectl("rollout", "restart", "deploy/web")
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    row = (await kubectl("get", "deploy", "web", "--no-headers")).split()
    assert row[:4] == ["web", "5/5", "5", "5"]
    await kubectl("delete", "deploy", "web", "--cascade=foreground")
    assert (await api.ok("GET", SETS))["items"] == [] and (await api.ok("GET", PODS))["items"] == []


async def test_orphans_are_adopted_by_the_next_one(api: Http, kubectl: Kubectl) -> None:
    await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 2))
    await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 2)
    before = {item["metadata"]["uid"] for item in (await api.ok("GET", PODS))["items"]}
    await kubectl("delete", "deploy", "web", "--cascade=orphan")
    assert len((await api.ok("GET", PODS))["items"]) == 2
    made = await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 2))
    await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 2)
    [found] = (await api.ok("GET", SETS))["items"]
    assert found["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert {item["metadata"]["uid"] for item in (await api.ok("GET", PODS))["items"]} == before


async def test_recreate_stops_everything_first(api: Http) -> None:
    body = workload("Deployment", "web", 2, strategy={"type": "Recreate"})
    body["spec"]["template"]["metadata"]["finalizers"] = ["example.com/hold"]
    await api.ok("POST", APPS + "/deployments", body)
    await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 2)
    change = {"spec": {"template": template("web", container={"image": "busybox:2"})}}
    await api.ok("PATCH", WEB, change, MERGE)
    pods = await api.until(PODS, lambda v: all(row["metadata"].get("deletionTimestamp") for row in v["items"]))
    await asyncio.sleep(0.3)
    assert len((await api.ok("GET", SETS))["items"]) == 1, "the old pods are not gone yet"
    for row in pods["items"]:
        await api.ok("PATCH", f"{PODS}/{row['metadata']['name']}", {"metadata": {"finalizers": None}}, MERGE)
    await api.until(WEB, lambda v: v["status"].get("updatedReplicas") == 2)
    assert {row["spec"]["containers"][0]["image"] for row in (await api.ok("GET", PODS))["items"]} == {"busybox:2"}


async def test_a_paused_one_is_scaled_but_not_rolled_out(api: Http, kubectl: Kubectl) -> None:
    await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 1))
    await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 1)
    await kubectl("rollout", "pause", "deploy/web")
    await kubectl("set", "image", "deploy/web", "c=busybox:2")
    await kubectl("scale", "deploy/web", "--replicas=2")
    paused = await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 2)
    assert "updatedReplicas" not in paused["status"]
    await kubectl("rollout", "resume", "deploy/web")
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    assert (await api.ok("GET", WEB))["status"]["updatedReplicas"] == 2


async def test_a_used_name_changes_the_hash(api: Http) -> None:
    made = await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 1))
    await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 1)
    [first] = (await api.ok("GET", SETS))["items"]
    await api.ok("DELETE", WEB)
    await api.until(SETS, lambda v: not v["items"])
    taken = workload("ReplicaSet", "other", 0)
    taken["metadata"]["name"] = first["metadata"]["name"]
    await api.ok("POST", SETS, taken)
    await api.ok("POST", APPS + "/deployments", workload("Deployment", "web", 1))
    ready = await api.until(WEB, lambda v: v["status"].get("availableReplicas") == 1)
    assert ready["status"]["collisionCount"] == 1 and made["metadata"]["uid"] != ready["metadata"]["uid"]
    assert len((await api.ok("GET", SETS))["items"]) == 2


async def test_the_history_is_bounded_and_an_idle_cluster_writes_nothing(api: Http) -> None:
    body = workload("Deployment", "web", 1, revisionHistoryLimit=1)
    await api.ok("POST", APPS + "/deployments", body)
    for number in range(2, 5):
        change = {"spec": {"template": template("web", container={"image": f"busybox:{number}"})}}
        await api.ok("PATCH", WEB, change, MERGE)
        generation = (await api.ok("GET", WEB))["metadata"]["generation"]
        await api.until(
            WEB,
            lambda v, g=generation: (
                v["status"].get("observedGeneration") == g
                and v["status"].get("updatedReplicas") == v["status"].get("availableReplicas") == 1
            ),
        )
    sets = await api.until(SETS, lambda v: len(v["items"]) == 2)
    assert sorted(row["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for row in sets["items"]) == [
        "3",
        "4",
    ]
    await asyncio.sleep(0.3)
    before = writes(api.sandbox)
    await asyncio.sleep(0.5)
    assert writes(api.sandbox) == before, "no writes when nothing happens"
