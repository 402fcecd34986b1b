"""Workload, PodGroup and CompositePodGroup of scheduling.k8s.io as Kubernetes 1.37 serves them: v1beta1, v1alpha3.

Validation is compared with kube-apiserver's in tests/sandbox/answers.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.sandbox.clients import PODS, Http, pod
from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.assembly import new_api
from volcano_py.sandbox.apiserver.openapi.v3 import OpenAPI

APIS = "/apis/scheduling.k8s.io"
GROUPS = f"{APIS}/v1beta1/namespaces/default/podgroups"
COMPOSITES = f"{APIS}/v1alpha3/namespaces/default/compositepodgroups"
GANG = {"gang": {"minCount": 2}}
REFERENCE = {"workloadName": "w", "templateName": "t"}


@pytest.fixture
def api(groups_api: Http) -> Http:
    return groups_api


def group(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG, **spec}}


async def test_a_pod_group_gets_defaults_priority_and_a_finalizer_and_has_two_versions(api: Http) -> None:
    code, made = await api.call("POST", GROUPS, group())
    assert code == 201
    assert made["spec"]["disruptionMode"] == {"single": {}} and made["spec"]["priority"] == 0
    assert made["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    code, same = await api.call("GET", GROUPS.replace("v1beta1", "v1alpha3") + "/g")
    assert code == 200 and same["apiVersion"] == "scheduling.k8s.io/v1alpha3" and same["spec"] == made["spec"]
    code, _ = await api.call("GET", GROUPS.replace("v1beta1", "v1alpha2"))
    assert code == 404, "1.37 does not have v1alpha2"


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
    assert spec["required"] == ["schedulingPolicy"]
    assert spec["properties"]["preemptionPolicy"]["enum"] == ["Never", "PreemptLowerPriority"]
    code, answer = await api.call("GET", "/openapi/v3/apis/batch/v1")
    assert "scheduling" in answer["components"]["schemas"]["io.k8s.api.batch.v1.JobSpec"]["properties"]
    code, answer = await api.call("GET", "/version")
    assert answer["gitVersion"].startswith("v1.37")


def test_an_older_version_has_no_field_of_a_later_one() -> None:
    document = orjson.loads(OpenAPI(new_api(kubernetes="1.36").registry, "1.36").document("apis/batch/v1"))
    properties = document["components"]["schemas"]["io.k8s.api.batch.v1.JobSpec"]["properties"]
    assert "scheduling" not in properties and "podFailurePolicy" in properties


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
