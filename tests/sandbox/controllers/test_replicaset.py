"""As many pods as wanted, also after adoption, release and rejections."""

from __future__ import annotations

from tests.sandbox.clients import MERGE, PODS, Http, pod
from tests.sandbox.controllers.objects import APPS, workload
from volcano_py.sandbox.apiserver.storage.store import Entry
from volcano_py.sandbox.controllers.apps.replicaset import deletion_order, status_of
from volcano_py.sandbox.controllers.runtime.pods import Pod

SET = APPS + "/replicasets/web"


def seen(name: str, **fields: object) -> Pod:
    entry = Entry("default", name, name, 1, b"", {}, {})
    row: dict = {"labels": {}, "phase": "Running", "node": "n", "deleting": False, "stopped": False, "finalizers": ()}
    row |= {"ready": True, "ready_since": 100.0, "created": "2026-01-01T00:00:00Z", "ended": 0.0, "restarts": 0}
    row |= {"deletion_cost": 0, **fields}
    return Pod(entry, name, **row)


def test_the_order_of_deletion() -> None:
    rows = [
        seen("old", ready_since=10.0),
        seen("young", ready_since=90.0),
        seen("crowded-1", node="m"),
        seen("crowded-2", node="m"),
        seen("dear", deletion_cost=5),
        seen("unready", ready=False),
        seen("pending", phase="Pending", ready=False),
        seen("nowhere", phase="Pending", node="", ready=False),
    ]
    order = [row.name for row in sorted(rows, key=deletion_order(rows))]
    assert order == ["nowhere", "pending", "unready", "young", "old", "crowded-1", "crowded-2", "dear"]


def test_a_pod_is_available_when_it_was_ready_long_enough() -> None:
    owner = workload("ReplicaSet", "web", 2, minReadySeconds=30)
    status, again = status_of(owner, [seen("a", ready_since=60.0), seen("b", ready_since=80.0)], "", 95.0)
    assert (status["readyReplicas"], status["availableReplicas"], again) == (2, 1, 15.0)


async def test_pods_are_made_replaced_adopted_and_released(api: Http) -> None:
    orphan = pod("orphan", nodeName="node-1")
    orphan["metadata"]["labels"] = {"app": "web"}
    await api.ok("POST", PODS, orphan)
    await api.ok("POST", APPS + "/replicasets", workload("ReplicaSet", "web", 3))
    ready = await api.until(SET, lambda v: v["status"].get("availableReplicas") == 3)
    assert ready["status"]["observedGeneration"] == 1 and ready["status"]["fullyLabeledReplicas"] == 3
    mine = await api.ok("GET", PODS + "/orphan")
    assert mine["metadata"]["ownerReferences"][0]["uid"] == ready["metadata"]["uid"]

    await api.ok("PATCH", PODS + "/orphan", {"metadata": {"labels": {"app": "other"}}}, MERGE)
    await api.until(PODS + "/orphan", lambda v: "ownerReferences" not in v["metadata"])
    pods = await api.until(PODS + "?labelSelector=app%3Dweb", lambda v: len(v["items"]) == 3)
    victim = pods["items"][0]["metadata"]["name"]
    await api.ok("DELETE", f"{PODS}/{victim}")
    await api.until(PODS + "?labelSelector=app%3Dweb", lambda v: len(v["items"]) == 3)

    await api.ok("PATCH", SET + "/scale", {"spec": {"replicas": 1}}, MERGE)
    await api.until(SET, lambda v: v["status"]["replicas"] == 1)
    assert len((await api.ok("GET", PODS + "?labelSelector=app%3Dweb"))["items"]) == 1


async def test_a_denial_is_reported_and_retried(api: Http) -> None:
    quotas = "/api/v1/namespaces/default/resourcequotas"
    await api.ok("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    await api.until(quotas + "/q", lambda v: v["status"].get("hard"))
    await api.ok("POST", APPS + "/replicasets", workload("ReplicaSet", "web", 2))
    failed = await api.until(SET, lambda v: v["status"].get("conditions"))
    row = failed["status"]["conditions"][0]
    assert (row["type"], row["reason"]) == ("ReplicaFailure", "FailedCreate") and "exceeded quota" in row["message"]
    events = "/api/v1/namespaces/default/events?fieldSelector=reason%3DFailedCreate"
    assert (await api.ok("GET", events))["items"]
    await api.ok("DELETE", quotas + "/q")
    healed = await api.until(SET, lambda v: v["status"]["replicas"] == 2 and not v["status"].get("conditions"))
    assert healed["status"]["fullyLabeledReplicas"] == 2
