"""Pods with names of their own: order, partitions, claims, and the real kubectl."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http, Kubectl
from tests.sandbox.controllers.objects import APPS, template, workload
from tests.sandbox.controllers.test_replicaset import seen
from volcano_py.sandbox.controllers.apps.statefulset_plan import plan, revision_for, status_of

Object = dict[str, Any]
NOW = 1000.0
SET = APPS + "/statefulsets/web"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def owner(replicas: int, policy: str = "OrderedReady", update: str = "RollingUpdate", **rolling: Any) -> Object:
    strategy = {"type": update, **({"rollingUpdate": rolling} if update == "RollingUpdate" else {})}
    return workload("StatefulSet", "web", replicas, podManagementPolicy=policy, updateStrategy=strategy)


def pods(*letters: str, revision: str = "new") -> Any:
    """One letter a pod: r ready, u not ready, d terminating, f failed, o ready but of an old revision, - none."""
    out = {}
    for ordinal, letter in enumerate(letters):
        fields: Object = {"labels": {"controller-revision-hash": "old" if letter == "o" else revision}}
        if letter == "u":
            fields |= {"ready": False}
        elif letter == "d":
            fields |= {"deleting": True}
        elif letter == "f":
            fields |= {"phase": "Failed", "ready": False}
        if letter != "-":
            out[ordinal] = seen(f"web-{ordinal}", **fields)
    return out


@pytest.mark.parametrize(
    ("wanted", "there", "create", "delete"),
    [
        (owner(3), "", [0], []),
        (owner(3), "r", [1], []),
        (owner(3), "u", [], []),  # the next one waits
        (owner(3), "-rr", [0], []),
        (owner(3), "rdr", [], []),  # a terminating pod is recreated when it is gone
        (owner(3), "rfr", [], ["web-1"]),
        (owner(1), "rrr", [], ["web-2"]),  # from the last one down, one at a time
        (owner(1), "rrd", [], []),
        (owner(1), "urr", [], []),
        (owner(3, "Parallel"), "-u-", [0, 2], []),
        (owner(1, "Parallel"), "rrr", [], ["web-2", "web-1"]),
        (owner(3), "oor", [], ["web-1"]),
        (owner(3), "oou", [], []),  # the new one is not ready yet
        (owner(3), "ooo", [], ["web-2"]),
        (owner(3, partition=2), "oor", [], []),
        (owner(3, partition=1), "oor", [], ["web-1"]),
        (owner(3, update="OnDelete"), "ooo", [], []),
        (owner(4, maxUnavailable=2), "oooo", [], ["web-3", "web-2"]),
        (owner(4, maxUnavailable=2), "ooou", [], []),
        (owner(4, "Parallel", maxUnavailable=2), "ooou", [], ["web-2"]),
        (owner(0), "", [], []),
    ],
)
def test_the_next_step(wanted: Object, there: str, create: list[int], delete: list[str]) -> None:
    step = plan(wanted, pods(*there), "new", NOW)
    assert step.create == create
    assert [pod.name for pod in (*step.condemn, *step.renew)] == delete


def test_ordinals_may_start_elsewhere() -> None:
    wanted = owner(2)
    wanted["spec"]["ordinals"] = {"start": 1}
    step = plan(wanted, pods("r", "r", "r"), "new", NOW)
    assert [pod.name for pod in step.condemn] == ["web-0"]


def test_the_partition_keeps_the_current_revision() -> None:
    wanted = owner(3, partition=2)
    assert [revision_for(wanted, ordinal, "old", "new") for ordinal in range(3)] == ["old", "old", "new"]


def test_the_current_revision_follows_when_all_are_new() -> None:
    status, _ = status_of(owner(2), list(pods("o", "r").values()), "old", "new", NOW)
    assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == ("old", 1, 1)
    status, _ = status_of(owner(2), list(pods("r", "r").values()), "old", "new", NOW)
    assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == ("new", 2, 2)


async def test_pods_come_in_order_with_their_claims(api: Http) -> None:
    default = {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    await api.ok("POST", classes, {"metadata": default, "provisioner": "example.com/disk"})
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    keep = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    body = workload(
        "StatefulSet",
        "web",
        3,
        serviceName="web",
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy=keep,
    )
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await api.ok("POST", APPS + "/statefulsets", body)
    ready = await api.until(SET, lambda v: v["status"].get("availableReplicas") == 3)
    assert ready["status"]["currentRevision"] == ready["status"]["updateRevision"]
    rows = (await api.ok("GET", PODS))["items"]
    assert [row["metadata"]["name"] for row in rows] == ["web-0", "web-1", "web-2"]
    born = [int(row["metadata"]["resourceVersion"]) for row in rows]
    assert born == sorted(born)
    assert rows[1]["spec"]["hostname"] == "web-1" and rows[1]["spec"]["subdomain"] == "web"
    assert rows[1]["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert rows[1]["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data-web-1"}
    claims = (await api.ok("GET", CLAIMS))["items"]
    assert [row["metadata"]["name"] for row in claims] == ["data-web-0", "data-web-1", "data-web-2"]

    uid = rows[0]["metadata"]["uid"]
    await api.ok("DELETE", PODS + "/web-0")
    again = await api.until(PODS + "/web-0", lambda v: v.get("metadata", {}).get("uid", uid) != uid)
    assert again["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data-web-0"}


async def test_kubectl_rolls_out_and_undoes(api: Http, kubectl: Kubectl) -> None:
    await api.ok("POST", APPS + "/statefulsets", workload("StatefulSet", "web", 2))
    await kubectl("rollout", "status", "sts/web", waiting.KUBECTL)
    await kubectl("set", "image", "sts/web", "c=busybox:2")
    await kubectl("rollout", "status", "sts/web", waiting.KUBECTL)
    images = ("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    assert await kubectl(*images) == "busybox:2 busybox:2"
    await kubectl("rollout", "undo", "sts/web")
    await kubectl("rollout", "status", "sts/web", waiting.KUBECTL)
    assert await kubectl(*images) == "busybox:1 busybox:1"
    history = [line.split()[0] for line in (await kubectl("rollout", "history", "sts/web")).splitlines()[2:] if line]
    assert history == ["2", "3"]
    await kubectl("scale", "sts/web", "--replicas=1")
    await api.until(PODS, lambda v: [row["metadata"]["name"] for row in v["items"]] == ["web-0"])
    await kubectl("delete", "sts", "web", "--cascade=foreground")
    assert (await api.ok("GET", PODS))["items"] == []
    await api.until(APPS + "/controllerrevisions", lambda v: not v["items"])


async def test_on_delete_waits_for_a_deletion(api: Http) -> None:
    await api.ok("POST", APPS + "/statefulsets", workload("StatefulSet", "web", 1, updateStrategy={"type": "OnDelete"}))
    await api.until(SET, lambda v: v["status"].get("availableReplicas") == 1)
    change = {"spec": {"template": template("web", container={"image": "busybox:2"})}}
    await api.ok("PATCH", SET, change, MERGE)
    await api.until(SET, lambda v: v["status"]["updateRevision"] != v["status"]["currentRevision"])
    await asyncio.sleep(0.2)
    assert (await api.ok("GET", PODS + "/web-0"))["spec"]["containers"][0]["image"] == "busybox:1"
    await api.ok("DELETE", PODS + "/web-0")
    await api.until(PODS + "/web-0", lambda v: v.get("spec", {}).get("containers", [{}])[0].get("image") == "busybox:2")
