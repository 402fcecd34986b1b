"""Workload, PodGroup and CompositePodGroup of scheduling.k8s.io as Kubernetes 1.37 serves them: v1beta1, v1alpha3."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.sandbox.clients import MERGE, PODS, Http, pod
from volcano_py.sandbox.apiserver.apimachinery import features

APIS = "/apis/scheduling.k8s.io"
GROUPS = f"{APIS}/v1beta1/namespaces/default/podgroups"
COMPOSITES = f"{APIS}/v1alpha3/namespaces/default/compositepodgroups"
WORKLOADS = f"{APIS}/v1beta1/namespaces/default/workloads"
GANG = {"gang": {"minCount": 2}}
REFERENCE = {"workloadName": "w", "templateName": "t"}


@pytest.fixture
def api(groups_api: Http) -> Http:
    return groups_api


def group(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG, **spec}}


def composite(name: str = "c", **spec: Any) -> dict[str, Any]:
    policy = {"gang": {"minGroupCount": 2}}
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, "workloadRef": REFERENCE, **spec}}


def template(name: str = "t", **more: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": GANG, **more}


def workload(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w"}, "spec": spec}


async def test_a_pod_group_gets_defaults_priority_and_a_finalizer_and_has_two_versions(api: Http) -> None:
    code, made = await api.call("POST", GROUPS, group(preemptionPolicy="Never"))
    assert code == 201
    assert made["spec"]["disruptionMode"] == {"single": {}} and made["spec"]["priority"] == 0
    assert made["spec"]["preemptionPolicy"] == "Never"
    assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    code, same = await api.call("GET", GROUPS.replace("v1beta1", "v1alpha3") + "/g")
    assert code == 200 and same["apiVersion"] == "scheduling.k8s.io/v1alpha3" and same["spec"] == made["spec"]
    code, _ = await api.call("GET", GROUPS.replace("v1beta1", "v1alpha2"))
    assert code == 404, "1.37 does not have v1alpha2"


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy", "must specify one of"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount", "equal to 1"),
        ({"disruptionMode": {"single": {}, "all": {}}}, "spec.disruptionMode", "exactly one of"),
        ({"parentCompositePodGroupName": "c"}, "spec.workloadRef", "Required"),
        ({"workloadRef": {"workloadName": "w"}}, "spec.workloadRef.templateName", "Required"),
        ({"preemptionPolicy": "Sometimes"}, "spec.preemptionPolicy", "Unsupported"),
        ({"resourceClaims": [{"name": "c"}]}, "spec.resourceClaims[0]", "exactly one of"),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "spec.schedulingConstraints.topology",
            "at most 1 items",
        ),
    ],
)
async def test_a_pod_group_that_cannot_be_used_is_rejected(
    api: Http, spec: dict[str, Any], field: str, text: str
) -> None:
    code, answer = await api.call("POST", GROUPS, group(**spec))
    assert code == 422
    (cause,) = answer["details"]["causes"]
    assert cause["field"] == field and text in cause["message"]


async def test_only_the_minimum_of_a_gang_changes(api: Http) -> None:
    await api.call("POST", GROUPS, group())
    for changed in (
        {"schedulingPolicy": {"gang": None, "basic": {}}},
        {"disruptionMode": {"single": None, "all": {}}},
        {"parentCompositePodGroupName": "c", "workloadRef": REFERENCE},
    ):
        code, answer = await api.call("PATCH", f"{GROUPS}/g", {"spec": changed}, MERGE)
        assert code == 422 and "immutable" in answer["message"], changed
    code, made = await api.call(
        "PATCH", f"{GROUPS}/g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}}, MERGE
    )
    assert code == 200 and made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 5}}
    assert made["metadata"]["generation"] == 2


async def test_status_names_only_claims_of_the_group(api: Http) -> None:
    claims = [{"name": "dev", "resourceClaimTemplateName": "t"}]
    await api.call("POST", GROUPS, group(resourceClaims=claims))
    for name, expected in (("dev", 200), ("other", 422)):
        rows = [{"name": name, "resourceClaimName": "made"}]
        code, _ = await api.call("PATCH", f"{GROUPS}/g/status", {"status": {"resourceClaimStatuses": rows}}, MERGE)
        assert code == expected


async def test_a_composite_needs_its_workload_and_never_changes(api: Http) -> None:
    code, answer = await api.call("POST", COMPOSITES, composite(workloadRef=None))
    assert code == 422 and "spec.workloadRef" in answer["message"]
    code, made = await api.call("POST", COMPOSITES, composite())
    assert code == 201 and made["spec"]["disruptionMode"] == {"single": {}}
    changed = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    code, _ = await api.call("PATCH", f"{COMPOSITES}/c", {"spec": changed}, MERGE)
    assert code == 422


def nested(depth: int) -> dict[str, Any]:
    if depth == 1:
        return {"name": "leaf", "schedulingPolicy": GANG}
    field = "podGroupTemplates" if depth == 2 else "compositePodGroupTemplates"
    return {"name": f"level-{depth}", "schedulingPolicy": {"basic": {}}, field: [nested(depth - 1)]}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "must specify one of"),
        ({"podGroupTemplates": [template()], "compositePodGroupTemplates": [nested(2)]}, "exactly one of"),
        ({"podGroupTemplates": [template(), template()]}, "Duplicate value"),
        ({"podGroupTemplates": [template(f"t{i}") for i in range(9)]}, "at most 8 items"),
        ({"podGroupTemplates": [template("a", priority=1), template("b", priority=2)]}, "same priority"),
        ({"compositePodGroupTemplates": [nested(5)]}, "maximum template hierarchy depth is 4"),
        (
            {"compositePodGroupTemplates": [{"name": "c", "schedulingPolicy": {"basic": {}}}]},
            "must have at least one child template",
        ),
    ],
)
async def test_a_workload_that_cannot_be_used_is_rejected(api: Http, spec: dict[str, Any], text: str) -> None:
    code, answer = await api.call("POST", WORKLOADS, workload(**spec))
    assert code == 422 and text in answer["message"]


async def test_templates_of_a_workload_stay_and_their_minimum_may_change(api: Http) -> None:
    code, made = await api.call("POST", WORKLOADS, workload(compositePodGroupTemplates=[nested(4)]))
    assert code == 201
    spec = made["spec"]
    leaf = spec["compositePodGroupTemplates"][0]["compositePodGroupTemplates"][0]["compositePodGroupTemplates"][0]
    leaf["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] = 3
    code, made = await api.call("PUT", f"{WORKLOADS}/w", made)
    assert code == 200
    leaf = made["spec"]["compositePodGroupTemplates"][0]["compositePodGroupTemplates"][0]["compositePodGroupTemplates"][
        0
    ]
    leaf["podGroupTemplates"].append(template("another"))
    code, answer = await api.call("PUT", f"{WORKLOADS}/w", made)
    assert code == 422 and "cannot be added or removed" in answer["message"]


async def test_a_deleted_group_stays_until_no_pod_names_it(api: Http) -> None:
    await api.call("POST", GROUPS, group())
    code, _ = await api.call("POST", PODS, pod("p", schedulingGroup={"podGroupName": "g"}, schedulerName="none"))
    assert code == 201
    code, gone = await api.call("DELETE", f"{GROUPS}/g")
    assert code == 200
    await asyncio.sleep(0.2)
    code, left = await api.call("GET", f"{GROUPS}/g")
    assert code == 200 and left["metadata"]["deletionTimestamp"]
    await api.call("DELETE", f"{PODS}/p")
    for _ in range(100):
        code, _ = await api.call("GET", f"{GROUPS}/g")
        if code == 404:
            break
        await asyncio.sleep(0.05)
    assert code == 404, gone


@pytest.mark.parametrize("gates", ["GenericWorkload=true"])
async def test_fields_of_disabled_gates_are_dropped(api: Http) -> None:
    gated = {
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
        "preemptionPolicy": "Never",
        "parentCompositePodGroupName": "c",
        "workloadRef": REFERENCE,
    }
    code, made = await api.call("POST", GROUPS, group(**gated))
    assert code == 201
    assert made["spec"].keys() == {"schedulingPolicy", "workloadRef", "disruptionMode", "priority"}
    code, _ = await api.call("GET", COMPOSITES)
    assert code == 404


async def test_discovery_and_schema_have_the_kinds(api: Http) -> None:
    code, answer = await api.call("GET", f"{APIS}/v1alpha3")
    assert code == 200
    assert {"podgroups", "podgroups/status", "workloads", "compositepodgroups"} <= {
        r["name"] for r in answer["resources"]
    }
    code, answer = await api.call("GET", "/openapi/v3/apis/scheduling.k8s.io/v1beta1")
    assert code == 200
    spec = answer["components"]["schemas"]["io.k8s.api.scheduling.v1beta1.PodGroupSpec"]
    assert "workloadRef" in spec["properties"]
    code, answer = await api.call("GET", "/version")
    assert answer["gitVersion"].startswith("v1.37")


def test_gates_belong_to_a_version() -> None:
    assert features.COMPOSITE in features.parse("AllAlpha=true", "1.37")
    with pytest.raises(ValueError, match=r"WorkloadAwarePreemption is unknown; .*\(Kubernetes 1.37\)"):
        features.parse("GenericWorkload=true,WorkloadAwarePreemption=true", "1.37")
    with pytest.raises(ValueError, match="CompositePodGroup needs TopologyAwareWorkloadScheduling=true"):
        features.parse("GenericWorkload=true,CompositePodGroup=true", "1.37")
    with pytest.raises(ValueError, match=r"1\.32 is unknown; valid values are 1\.33, "):
        features.parse("", "1.32")
    with pytest.raises(ValueError, match=r"GenericWorkload is unknown; valid values are AllAlpha \(Kubernetes 1\.35\)"):
        features.parse("GenericWorkload=true", "1.35")
