"""Claims of PodGroups: made once for a group from its templates, shared by its pods, released with the group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.clients import MERGE, PODS, Http
from tests.sandbox.controllers.test_resource_claims import (
    CLAIMS,
    TEMPLATES,
    allocation,
    bind,
    claiming,
    template,
)

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
Object = dict[str, Any]


@pytest.fixture
def api(groups_api: Http) -> Http:
    return groups_api


def group(**row: str) -> Object:
    claims = [{"name": "gpu", **row}]
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims}
    return {"metadata": {"name": "g"}, "spec": spec}


def member(name: str, **row: str) -> Object:
    made = claiming(name, **(row or {"resourceClaimTemplateName": "one"}))
    made["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return made


async def shared(api: Http) -> str:
    """The name of the claim of the group."""
    found = await api.until(f"{GROUPS}/g", lambda g: (g.get("status") or {}).get("resourceClaimStatuses"))
    [row] = found["status"]["resourceClaimStatuses"]
    assert row["name"] == "gpu"
    return str(row["resourceClaimName"])


async def claim_of(api: Http, pod: str) -> str:
    found = await api.until(f"{PODS}/{pod}", lambda p: p["status"].get("resourceClaimStatuses"))
    return str(found["status"]["resourceClaimStatuses"][0]["resourceClaimName"])


async def test_pods_share_the_claim_that_is_made_for_their_group_in_any_order(api: Http) -> None:
    await api.ok("POST", PODS, member("early"))
    await api.ok("POST", GROUPS, group(resourceClaimTemplateName="one"))
    await api.ok("POST", TEMPLATES, template())
    name = await shared(api)
    await api.ok("POST", PODS, member("late"))
    assert await claim_of(api, "early") == await claim_of(api, "late") == name
    [claim] = (await api.ok("GET", CLAIMS))["items"]
    [owner] = claim["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == ("scheduling.k8s.io/v1beta1", "PodGroup", "g")
    assert claim["metadata"]["name"].startswith("g-gpu-")
    await api.ok("DELETE", f"{PODS}/early?gracePeriodSeconds=0")
    assert await claim_of(api, "late") == name
    assert len((await api.ok("GET", CLAIMS))["items"]) == 1, "a claim of the group does not end with a pod"


async def test_a_pod_whose_claim_is_not_one_of_the_group_gets_its_own(api: Http) -> None:
    await api.ok("POST", TEMPLATES, template())
    await api.ok("POST", TEMPLATES, template("two"))
    await api.ok("POST", GROUPS, group(resourceClaimTemplateName="one"))
    name = await shared(api)
    await api.ok("POST", PODS, member("a", resourceClaimTemplateName="two"))
    own = await claim_of(api, "a")
    assert own != name and own.startswith("a-gpu-")


async def reserved_for_group(api: Http, name: str) -> None:
    uid = (await api.ok("GET", f"{GROUPS}/g"))["metadata"]["uid"]
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": uid}
    status = {"allocation": allocation(), "reservedFor": [consumer]}
    await api.ok("PATCH", f"{CLAIMS}/{name}/status", {"status": status}, kind=MERGE)


async def test_a_kubelet_starts_a_pod_whose_claim_is_reserved_for_its_group(api: Http) -> None:
    await api.ok("POST", TEMPLATES, template())
    await api.ok("POST", GROUPS, group(resourceClaimTemplateName="one"))
    await api.ok("POST", PODS, member("a"))
    await claim_of(api, "a")
    await reserved_for_group(api, await shared(api))
    await bind(api, "a")
    await api.until(f"{PODS}/a", lambda p: p["status"]["phase"] == "Running")


async def test_a_claim_keeps_its_devices_until_the_group_is_gone(api: Http) -> None:
    await api.ok("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": template()["spec"]["spec"]})
    await api.ok("POST", GROUPS, group(resourceClaimName="c"))
    await api.ok("POST", PODS, member("a", resourceClaimName="c"))
    await reserved_for_group(api, "c")
    await bind(api, "a")
    await api.until(f"{PODS}/a", lambda p: p["status"]["phase"] == "Running")
    await api.ok("DELETE", f"{GROUPS}/g")  # protected as long as the pod is there
    assert (await api.ok("GET", f"{CLAIMS}/c"))["status"]["reservedFor"]
    await api.ok("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
    await api.until(f"{CLAIMS}/c", lambda c: not c["status"].get("allocation") and not c["status"].get("reservedFor"))
