"""Which claims the members of a native PodGroup share, and that a reservation for the group counts for each of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano_py.api import core, dra, gang
from volcano_py.scheduler.model.claims.group_claims import claims_of_group, is_shared
from volcano_py.scheduler.model.claims.resource_claims import ResourceClaims

NAMED, MADE = {"resourceClaimName": "c"}, {"resourceClaimTemplateName": "t"}


def group(name: str, **row: str) -> gang.PodGroup:
    statuses = [{"name": name, "resourceClaimName": "c"}] if "resourceClaimTemplateName" in row else []
    whole = {
        "metadata": {"name": "g", "namespace": "lab", "uid": "g"},
        "spec": {"resourceClaims": [{"name": name, **row}]},
        "status": {"resourceClaimStatuses": statuses},
    }
    return msgspec.convert(whole, gang.PodGroup)


def pod(name: str, of: str = "g", **row: str) -> core.Pod:
    statuses = [{"name": name, "resourceClaimName": "c"}] if "resourceClaimTemplateName" in row else []
    whole = {
        "metadata": {"name": "p", "namespace": "lab", "uid": "p"},
        "spec": {"schedulingGroup": {"podGroupName": of}, "resourceClaims": [{"name": name, **row}]},
        "status": {"resourceClaimStatuses": statuses},
    }
    return msgspec.convert(whole, core.Pod)


@pytest.mark.parametrize(
    ("of_group", "of_pod", "shared"),
    [
        (group("gpu", **NAMED), pod("gpu", **NAMED), True),
        (group("gpu", **MADE), pod("gpu", **MADE), True),
        (group("other", **NAMED), pod("gpu", **NAMED), False),
        (group("gpu", **MADE), pod("gpu", **NAMED), False),
        (group("gpu", **NAMED), pod("gpu", resourceClaimName="d"), False),
    ],
)
def test_a_claim_is_shared_if_name_and_reference_are_equal(of_group: Any, of_pod: Any, shared: bool) -> None:
    assert claims_of_group(of_group) == ["lab/c"]
    assert is_shared(of_group, of_pod, "lab/c") is shared


def problem(of_pod: core.Pod, consumers: list[dict[str, str]], **metadata: Any) -> str:
    whole = {
        "metadata": {"name": "c", "namespace": "lab", "uid": "c", **metadata},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": []}}, "reservedFor": consumers},
    }
    claim = msgspec.convert(whole, dra.ResourceClaim)
    demand = ResourceClaims({"ResourceClaim": {"lab/c": claim}}).demand(of_pod)
    assert demand is not None
    return demand.problem


def owner(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "x", "kind": kind, "name": name, "uid": "o", "controller": True}]}


def test_a_generated_claim_may_belong_to_the_group_of_the_pod() -> None:
    assert problem(pod("gpu", **MADE), [], **owner("PodGroup", "g")) == ""
    for kind, name in (("PodGroup", "another"), ("Pod", "g")):
        assert "was not created for this pod" in problem(pod("gpu", **MADE), [], **owner(kind, name))


def test_a_group_is_one_of_the_consumers_of_a_claim_however_many_pods_it_has() -> None:
    full = [{"resource": "pods", "name": f"p-{i}", "uid": str(i)} for i in range(dra.MAX_CONSUMERS - 1)]
    ours = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    assert problem(pod("gpu", **NAMED), [*full, ours]) == ""
    assert "is in use" in problem(pod("gpu", of="another", **NAMED), [*full, ours])
