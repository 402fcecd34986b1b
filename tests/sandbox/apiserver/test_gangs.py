"""Workload and PodGroup of scheduling.k8s.io/v1alpha2, behind the API server's feature gates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.sandbox.clients import MERGE, PODS, STRATEGIC, Http, http, pod
from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.cluster import Sandbox

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
GANG = {"gang": {"minCount": 2}}


@pytest.fixture
def gates() -> str:
    return "AllAlpha=true"


@pytest.fixture
async def api(gates: str) -> AsyncIterator[Http]:
    async with Sandbox(nodes=1, feature_gates=gates) as sandbox, http(sandbox) as client:
        yield client


def group(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG, **spec}}


def template(name: str = "workers", **more: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": GANG, **more}


async def test_a_pod_group_is_stored_with_its_defaults(api: Http) -> None:
    code, made = await api.call("POST", GROUPS, group(schedulingConstraints={"topology": [{"key": "zone"}]}))
    assert code == 201
    assert made["spec"]["disruptionMode"] == "Pod" and made["spec"]["priority"] == 0
    assert made["spec"]["schedulingConstraints"] == {"topology": [{"key": "zone"}]}
    assert "generation" not in made["metadata"]
    assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]


async def test_status_is_a_subresource_whose_conditions_are_merged_by_type(api: Http) -> None:
    await api.call("POST", GROUPS, {**group(), "status": {"conditions": [{"type": "Sent", "status": "True"}]}})
    stamp = "2026-01-01T00:00:00Z"
    for type_ in ("PodGroupScheduled", "DisruptionTarget"):
        row = {"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": stamp}
        code, changed = await api.call("PATCH", f"{GROUPS}/g/status", {"status": {"conditions": [row]}}, STRATEGIC)
        assert code == 200
    assert {row["type"] for row in changed["status"]["conditions"]} == {"PodGroupScheduled", "DisruptionTarget"}


async def test_fields_of_a_pod_group_do_not_change(api: Http) -> None:
    await api.call("POST", GROUPS, group())
    code, answer = await api.call("PATCH", f"{GROUPS}/g", {"spec": {"disruptionMode": "PodGroup"}}, MERGE)
    assert code == 422 and "spec.disruptionMode: Invalid value" in answer["message"]


async def test_the_priority_comes_from_the_class_and_users_may_not_set_it(api: Http) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await api.call("POST", classes, {"metadata": {"name": "high"}, "value": 100})
    code, made = await api.call("POST", GROUPS, group(priorityClassName="high"))
    assert code == 201 and made["spec"]["priority"] == 100
    code, answer = await api.call("POST", GROUPS, group("h", priority=7))
    assert code == 403 and "priority set in the pod group (7) must match" in answer["message"]
    code, answer = await api.call("POST", GROUPS, group("h", priorityClassName="none"))
    assert code == 403 and "no PriorityClass with name none" in answer["message"]
    await api.call("POST", classes, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    code, made = await api.call("POST", GROUPS, group("i"))
    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("usual", 5)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"podGroupTemplates": []}, "spec.podGroupTemplates"),
        ({"podGroupTemplates": [template(f"t{i}") for i in range(9)]}, "spec.podGroupTemplates"),
        ({"podGroupTemplates": [template("no_label")]}, "spec.podGroupTemplates[0].name"),
        ({"podGroupTemplates": [template(schedulingPolicy={})]}, "spec.podGroupTemplates[0].schedulingPolicy"),
        ({"podGroupTemplates": [template()], "controllerRef": {"kind": "Job"}}, "spec.controllerRef.name"),
    ],
)
async def test_a_workload_that_cannot_be_used_is_rejected(api: Http, spec: dict[str, Any], field: str) -> None:
    code, answer = await api.call("POST", WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
    assert code == 422 and answer["details"]["causes"][0]["field"] == field


async def test_templates_of_a_workload_do_not_change(api: Http) -> None:
    workload = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template()]}}
    code, _ = await api.call("POST", WORKLOADS, workload)
    assert code == 201
    changed = {"spec": {"podGroupTemplates": [template("others")]}}
    code, answer = await api.call("PATCH", f"{WORKLOADS}/w", changed, MERGE)
    assert code == 422 and "spec.podGroupTemplates" in answer["message"]


async def test_the_group_of_a_pod_does_not_change(api: Http) -> None:
    code, answer = await api.call("POST", PODS, pod("bad", schedulingGroup={"podGroupName": "No_Name"}))
    assert code == 422 and answer["details"]["causes"][0]["field"] == "spec.schedulingGroup.podGroupName"
    code, made = await api.call("POST", PODS, pod("p", schedulingGroup={"podGroupName": "g"}))
    assert code == 201 and made["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    code, _ = await api.call("PATCH", f"{PODS}/p", {"spec": {"schedulingGroup": {"podGroupName": "h"}}}, MERGE)
    assert code == 422


@pytest.mark.parametrize("gates", ["GenericWorkload=true"])
async def test_fields_whose_gate_is_off_are_dropped(api: Http) -> None:
    spec = {"schedulingConstraints": {"topology": [{"key": "a"}]}, "disruptionMode": "PodGroup", "priority": 3}
    code, made = await api.call("POST", GROUPS, group(**spec))
    assert code == 201
    assert made["spec"].keys() & spec.keys() == set()
    workload = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template(disruptionMode="PodGroup")]}}
    _, made = await api.call("POST", WORKLOADS, workload)
    assert "disruptionMode" not in made["spec"]["podGroupTemplates"][0]


@pytest.mark.parametrize("gates", [""])
async def test_without_the_gate_the_kinds_are_not_served(api: Http) -> None:
    code, _ = await api.call("GET", GROUPS)
    assert code == 404
    code, made = await api.call("POST", PODS, pod("p", schedulingGroup={"podGroupName": "g"}))
    assert code == 201 and "schedulingGroup" not in made["spec"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Nonsense=true", "Nonsense is unknown; valid values are GenericWorkload"),
        ("GenericWorkload", "write GenericWorkload=true or GenericWorkload=false"),
        ("WorkloadAwarePreemption=true", "needs GenericWorkload=true"),
    ],
)
def test_gates_that_cannot_be_used(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        features.parse(text)


def test_gates_are_read_as_kubernetes_reads_them() -> None:
    assert features.parse("") == frozenset()
    assert features.parse("GenericWorkload=true, GangScheduling=False") == {"GenericWorkload"}
    assert features.parse("AllAlpha=true,GangScheduling=false") == set(features.KNOWN) - {"GangScheduling"}
