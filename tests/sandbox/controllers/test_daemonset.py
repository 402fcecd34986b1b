"""A pod on every node that fits: which nodes, roll-outs, and the real kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import PODS, Http, Kubectl
from tests.sandbox.controllers.objects import APPS, template
from tests.sandbox.controllers.test_replicaset import seen
from volcano_py.sandbox.controllers.apps.daemonset_plan import belongs, plan, status_of

Object = dict[str, Any]
NOW = 1000.0


def owner(rolling: Object | None = None, **spec: Any) -> Object:
    update = {"type": "RollingUpdate", "rollingUpdate": rolling or {"maxUnavailable": 1, "maxSurge": 0}}
    if rolling == {}:
        update = {"type": "OnDelete"}
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template("web", node="", **spec)}
    return {"metadata": {"name": "web", "generation": 1}, "spec": {**body, "updateStrategy": update}}


def node(name: str, taints: tuple[str, ...] = (), **labels: str) -> Object:
    rows = [dict(zip(("key", "effect"), text.split(":"), strict=True)) for text in taints]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": rows}}


def affinity(key: str, value: str, field: str = "matchExpressions") -> Object:
    term = {field: [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("wanted", "where", "expected"),
    [
        (owner(), node("a"), (True, True)),
        (owner(nodeSelector={"disk": "ssd"}), node("a"), (False, False)),
        (owner(nodeSelector={"disk": "ssd"}), node("a", disk="ssd"), (True, True)),
        (owner(affinity=affinity("zone", "x")), node("a", zone="x"), (True, True)),
        (owner(affinity=affinity("zone", "x")), node("a", zone="y"), (False, False)),
        (owner(affinity=affinity("metadata.name", "a", "matchFields")), node("b"), (False, False)),
        (owner(), node("a", ("dedicated:NoSchedule",)), (False, True)),
        (owner(), node("a", ("dedicated:NoExecute",)), (False, False)),
        (owner(tolerations=[{"operator": "Exists"}]), node("a", ("dedicated:NoExecute",)), (True, True)),
        (owner(), node("a", ("node.kubernetes.io/unreachable:NoExecute",)), (True, True)),
        (owner(), node("a", ("node.kubernetes.io/unschedulable:NoSchedule",)), (True, True)),
    ],
)
def test_where_a_daemon_belongs(wanted: Object, where: Object, expected: tuple[bool, bool]) -> None:
    assert belongs(wanted, where) == expected


def pods(*words: str) -> Any:
    """One word a node: n new and o old ones that are ready, m and p the same not ready, f failed, d terminating."""
    out: dict[str, list[Any]] = {}
    for place, word in enumerate(words):
        for letter in word.strip("-"):
            fields: Object = {"labels": {"controller-revision-hash": "old" if letter in "op" else "new"}}
            fields |= {"ready": letter in "no", "deleting": letter == "d", "node": f"n{place}"}
            fields |= {"phase": "Failed" if letter == "f" else "Running"}
            out.setdefault(f"n{place}", []).append(seen(f"{letter}{place}", **fields))
    return out


@pytest.mark.parametrize(
    ("rolling", "there", "create", "delete"),
    [
        (None, ("-", "n", "-"), ["n0", "n2"], []),
        (None, ("n", "n", "d"), [], []),  # it comes again when it is gone
        (None, ("n", "nn", "f"), [], ["n1", "f2"]),
        (None, ("o", "o", "o"), [], ["o0"]),
        (None, ("m", "o", "o"), [], []),  # the first new one is not ready yet
        (None, ("o", "p", "o"), [], ["p1"]),  # the broken one first
        ({"maxUnavailable": 2}, ("o", "o", "o"), [], ["o0", "o1"]),
        ({"maxUnavailable": "50%"}, ("o", "o", "o"), [], ["o0", "o1"]),
        ({}, ("o", "o", "o"), [], []),
        ({"maxUnavailable": 0, "maxSurge": 1}, ("o", "o", "o"), ["n0"], []),
        ({"maxUnavailable": 0, "maxSurge": 1}, ("mo", "o", "o"), [], []),
        ({"maxUnavailable": 0, "maxSurge": 1}, ("no", "o", "o"), ["n1"], ["o0"]),
    ],
)
def test_the_next_step(rolling: Object | None, there: tuple[str, ...], create: list[str], delete: list[str]) -> None:
    nodes = {f"n{place}": node(f"n{place}") for place in range(3)}
    step = plan(owner(rolling), nodes, pods(*there), "new", NOW)
    assert (step.create, [pod.name for pod in step.delete]) == (create, delete)


def test_the_status_counts_nodes() -> None:
    nodes = {"n0": node("n0"), "n1": node("n1"), "n2": node("n2", ("dedicated:NoSchedule",)), "n3": node("n3")}
    status, _ = status_of(owner(), nodes, pods("n", "m", "o", "-"), "new", NOW)
    assert status == {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "numberReady": 1,
        "updatedNumberScheduled": 2,
        "numberAvailable": 1,
        "numberUnavailable": 2,
        "observedGeneration": 1,
    }


async def test_kubectl_rolls_out_and_undoes(scheduled: tuple[Http, Kubectl]) -> None:
    api, kubectl = scheduled
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", **owner()}
    await api.ok("POST", APPS + "/daemonsets", body)
    await kubectl("rollout", "status", "ds/web", waiting.KUBECTL)
    rows = (await api.ok("GET", PODS))["items"]
    assert sorted(row["spec"]["nodeName"] for row in rows) == ["node-0", "node-1", "node-2"]
    await kubectl("set", "image", "ds/web", "c=busybox:2")
    await kubectl("rollout", "status", "ds/web", waiting.KUBECTL)
    await kubectl("rollout", "undo", "ds/web")
    await kubectl("rollout", "status", "ds/web", waiting.KUBECTL)
    rows = (await api.ok("GET", PODS))["items"]
    assert {row["spec"]["containers"][0]["image"] for row in rows} == {"busybox:1"}
    await kubectl("taint", "nodes", "node-1", "dedicated=us:NoExecute")
    await api.until(
        PODS, lambda v: sorted(row["spec"].get("nodeName", "") for row in v["items"]) == ["node-0", "node-2"]
    )
    await kubectl("delete", "ds", "web", "--cascade=foreground")
    assert (await api.ok("GET", PODS))["items"] == []
