"""What a CRD does not have of what the programs use."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from volcano_py.api.kinds import JOB, QUEUE, VOLCANO, ResourceType
from volcano_py.kube.definitions import lacking
from volcano_py.sandbox import volcano

OURS = {(one["spec"]["group"], one["spec"]["names"]["plural"]): one for one in volcano.definitions()}


def version_of(rt: ResourceType) -> dict[str, Any]:
    """A copy of the version of our CRD."""
    rows = OURS[rt.group, rt.plural]["spec"]["versions"]
    return copy.deepcopy(next(row for row in rows if row["name"] == rt.version))


def compared(rt: ResourceType, version: dict[str, Any]) -> list[str]:
    served = [rt.plural, *(f"{rt.plural}/{name}" for name in version.get("subresources") or ())]
    return lacking(rt, served, version["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize("rt", VOLCANO, ids=lambda rt: rt.plural)
def test_our_definitions_have_all_that_is_used(rt: ResourceType) -> None:
    assert compared(rt, version_of(rt)) == []


def test_fields_and_subresources_that_are_absent() -> None:
    version = version_of(JOB)
    del version["subresources"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["minSuccess"], spec["tasks"]["items"]["properties"]["partitionPolicy"]["properties"]["networkTopology"]
    assert compared(JOB, version) == [
        "spec.tasks.partitionPolicy.networkTopology",
        "spec.minSuccess",
        "the subresource status",
    ]


def test_a_schema_that_keeps_unknown_fields_has_them_all() -> None:
    version = version_of(QUEUE)
    version["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert compared(QUEUE, version) == []
