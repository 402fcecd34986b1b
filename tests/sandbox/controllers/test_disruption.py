"""Budgets: their figures, and kubectl drain, which keeps to them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http, Kubectl, pod
from tests.sandbox.controllers.objects import APPS, workload
from tests.sandbox.controllers.test_replicaset import seen
from volcano_py.sandbox.controllers.policy.disruption import needs, status_of

Object = dict[str, Any]
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def budget(**spec: Any) -> Object:
    return {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2)),  # of the pods that there are
        ({"minAvailable": "50%"}, (5, 3)),  # of those that are wanted
        ({"maxUnavailable": 1}, (5, 4)),
        ({"maxUnavailable": "30%"}, (5, 3)),
        ({"maxUnavailable": 9}, (5, 0)),
        ({}, (0, 0)),
    ],
)
def test_how_many_have_to_be_healthy(spec: Object, expected: tuple[int, int]) -> None:
    assert needs(budget(**spec), [seen("a"), seen("b"), seen("c")], lambda: 5) == expected


def test_a_terminating_pod_is_not_healthy() -> None:
    old = budget(minAvailable=1)
    old["status"] = {"disruptedPods": {"a": "2026-01-01T00:00:00Z", "gone": "2026-01-01T00:00:00Z"}}
    pods = [seen("a"), seen("b"), seen("c", ready=False), seen("d", deleting=True), seen("e")]
    now = 1767225600.0 + 20  # 20 s after the eviction
    status, again = status_of(old, pods, 5, 1, now)
    assert (status["currentHealthy"], status["disruptionsAllowed"], again) == (2, 1, 100.0)
    assert list(status["disruptedPods"]) == ["a"]
    later, _ = status_of(old, pods, 5, 1, now + 100)
    assert later["currentHealthy"] == 3 and "disruptedPods" not in later


async def test_the_status_follows_the_pods(api: Http) -> None:
    await api.ok("POST", APPS + "/replicasets", workload("ReplicaSet", "web", 3))
    await api.ok("POST", BUDGETS, budget(maxUnavailable="50%"))
    path = BUDGETS + "/web"
    full = await api.until(path, lambda v: v["status"].get("currentHealthy") == 3)
    assert (full["status"]["desiredHealthy"], full["status"]["disruptionsAllowed"]) == (1, 2)
    row = full["status"]["conditions"][0]
    assert (row["type"], row["status"], row["reason"]) == ("DisruptionAllowed", "True", "SufficientPods")
    await api.ok("PATCH", APPS + "/replicasets/web", {"spec": {"replicas": 1}}, MERGE)
    await api.until(path, lambda v: (v["status"]["expectedPods"], v["status"]["disruptionsAllowed"]) == (1, 1))
    await api.ok("PATCH", APPS + "/replicasets/web", {"spec": {"replicas": 0}}, MERGE)
    await api.until(path, lambda v: v["status"]["disruptionsAllowed"] == 0 and v["status"]["expectedPods"] == 0)


async def test_pods_without_a_controller_cannot_be_counted_in_percent(api: Http) -> None:
    lonely = pod("lonely", nodeName="node-0")
    lonely["metadata"]["labels"] = {"app": "web"}
    await api.ok("POST", PODS, lonely)
    await api.ok("POST", BUDGETS, budget(maxUnavailable=1))
    failed = await api.until(BUDGETS + "/web", lambda v: v["status"].get("conditions"))
    row = failed["status"]["conditions"][0]
    assert row["reason"] == "SyncFailed" and 'no controller ref for pod "lonely"' in row["message"]
    assert failed["status"]["disruptionsAllowed"] == 0


async def test_evictions_keep_to_it(api: Http) -> None:
    await api.ok("POST", APPS + "/replicasets", workload("ReplicaSet", "web", 2))
    await api.ok("POST", BUDGETS, budget(minAvailable=2))
    path = BUDGETS + "/web"
    await api.until(path, lambda v: v["status"].get("currentHealthy") == 2)
    victim = (await api.ok("GET", PODS))["items"][0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim}}
    status, answer = await api.call("POST", f"{PODS}/{victim}/eviction", eviction)
    assert status == 429 and "needs 2 healthy pods and has 2 currently" in answer["details"]["causes"][0]["message"]
    await api.ok("PATCH", APPS + "/replicasets/web", {"spec": {"replicas": 3}}, MERGE)
    await api.until(path, lambda v: v["status"]["disruptionsAllowed"] == 1)
    assert (await api.call("POST", f"{PODS}/{victim}/eviction", eviction))[0] == 201
    await api.until(path, lambda v: v["status"]["currentHealthy"] == 3 and "disruptedPods" not in v["status"])


@pytest.mark.slow
async def test_kubectl_drain_waits_for_the_budget(scheduled: tuple[Http, Kubectl]) -> None:
    api, kubectl = scheduled
    await kubectl("cordon", "node-1")
    await kubectl("cordon", "node-2")
    await kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
    await kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    path = BUDGETS + "/web"
    await api.until(path, lambda v: v["status"].get("disruptionsAllowed") == 1)
    draining = asyncio.create_task(kubectl.run("drain", "node-0", waiting.KUBECTL))
    await api.until("/api/v1/nodes/node-0", lambda v: v["spec"].get("unschedulable"))
    blocked = await api.until(path, lambda v: v["status"]["currentHealthy"] == 2)
    assert blocked["status"]["disruptionsAllowed"] == 0
    await asyncio.sleep(0.3)
    assert not draining.done(), "no other node has capacity for the others"
    await kubectl("uncordon", "node-1")
    code, _, err = await draining
    assert code == 0 and "Cannot evict pod as it would violate" in err
    rows = (await api.ok("GET", PODS))["items"]
    assert all(row["spec"].get("nodeName") != "node-0" for row in rows)
    await kubectl("rollout", "status", "deploy/web", waiting.KUBECTL)
