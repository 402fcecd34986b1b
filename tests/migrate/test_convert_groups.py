"""`volcano-py migrate groups`: objects of v1alpha2 as manifests of v1beta1."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.migrate.convert_groups import converted_groups

META = {
    "name": "g",
    "namespace": "lab",
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["scheduling.k8s.io/podgroup-protection"],
    "labels": {"volcano.sh/queue-name": "research"},
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
}
GANG = {"gang": {"minCount": 2}}


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": META, "spec": {"schedulingPolicy": GANG, **spec}, "status": {"conditions": [{}]}}


def pod(priority_class: str = "", of: str = "g") -> dict[str, Any]:
    spec = {"schedulingGroup": {"podGroupName": of}, "priorityClassName": priority_class}
    return {"metadata": {"name": "p", "namespace": "lab"}, "spec": spec}


def converted(old: dict[str, Any], *pods: dict[str, Any]) -> dict[str, Any]:
    found = converted_groups([old], [], pods)
    assert not found.warnings
    [made] = found.manifests
    return made


def test_a_group_keeps_what_a_user_sets_and_nothing_that_the_server_sets() -> None:
    made = converted(group(priority=7, priorityClassName="high"))
    assert made == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "g",
            "namespace": "lab",
            "labels": {"volcano.sh/queue-name": "research"},
            "annotations": {"a": "b"},
        },
        "spec": {"schedulingPolicy": GANG, "priorityClassName": "high"},
    }
    assert META["finalizers"], "the object that was read does not change"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"disruptionMode": "Pod"}, {"disruptionMode": {"single": {}}}),
        ({"disruptionMode": "PodGroup"}, {"disruptionMode": {"all": {}}}),
        (
            {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}},
            {"workloadRef": {"workloadName": "w", "templateName": "t"}},
        ),
        ({"schedulingConstraints": {"topology": [{"key": "rack"}]}},) * 2,
        ({"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},) * 2,
    ],
)
def test_each_field_that_changed_is_converted(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert converted(group(**old))["spec"] == {"schedulingPolicy": GANG, **new}


def test_the_templates_of_a_workload_are_converted_and_come_before_the_groups() -> None:
    templates = [{"name": "t", "schedulingPolicy": GANG, "disruptionMode": "PodGroup", "priority": 3}]
    workload = {"metadata": {"name": "w", "namespace": "lab"}, "spec": {"podGroupTemplates": templates}}
    found = converted_groups([group()], [workload], [])
    assert [m["kind"] for m in found.manifests] == ["Workload", "PodGroup"]
    [template] = found.manifests[0]["spec"]["podGroupTemplates"]
    assert template == {"name": "t", "schedulingPolicy": GANG, "disruptionMode": {"all": {}}}


def test_a_group_gets_the_class_of_its_pods_and_a_warning_if_they_differ() -> None:
    assert converted(group(), pod("high"), pod("high"), pod("low", of="h"))["spec"]["priorityClassName"] == "high"
    assert "priorityClassName" not in converted(group(), pod())["spec"]
    for old, pods in ((group(), (pod("high"), pod())), (group(priorityClassName="low"), (pod("high"),))):
        [warning] = converted_groups([old], [], pods).warnings
        assert "PodGroup lab/g has priorityClassName" in warning and "reject such a group" in warning
