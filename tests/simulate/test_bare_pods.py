"""Pods without a PodGroup: they get the one that the podgroup controller would make."""

from __future__ import annotations

from typing import Any

from tests.simulate.test_complete import completed, pod, priority_class
from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 2, "memory": "8Gi", "pods": 10}}}


def bare(name: str, cpu: str = "1", **metadata: Any) -> Manifest:
    made = pod(containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])
    made["metadata"] |= {"name": name, **metadata}
    return made


def groups(*manifests: Manifest) -> dict[str, Manifest]:
    return {name: o for (kind, name), o in completed(*manifests).items() if kind == "PodGroup"}


def owned_by(kind: str, name: str) -> list[Manifest]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}]


def test_its_min_resources_are_the_requests_of_its_pod() -> None:
    (group,) = groups(bare("a", "1500m")).values()
    assert group["spec"]["minMember"] == 1 and group["spec"]["queue"] == "default"
    asked = {"cpu": "1500m", "requests.cpu": "1500m", "pods": "1", "count/pods": "1"}
    assert group["spec"]["minResources"] == asked


def test_a_bare_pod_that_is_too_large_is_not_admitted() -> None:
    simulation = Simulation([NODE, bare("a", "3")])
    (phase,) = simulation.cycle(configuration(DEFAULT_TEXT, True)).phases.values()
    assert phase == "Pending"


def test_an_empty_name_of_a_group_is_none() -> None:
    made = completed(bare("a", annotations={"scheduling.k8s.io/group-name": ""}))
    assert made["Pod", "a"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "podgroup-pod-default-a"


def test_pods_of_one_owner_share_a_group_and_the_oldest_defines_it() -> None:
    web = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {}}
    web["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/x": "y", "other": "z"}
    pods = [
        bare("b", "2", creationTimestamp="2026-01-01T00:00:02Z", ownerReferences=owned_by("ReplicaSet", "web")),
        bare("a", "1", creationTimestamp="2026-01-01T00:00:01Z", ownerReferences=owned_by("ReplicaSet", "web")),
    ]
    for manifests in ((web, *pods), (*reversed(pods), web)):
        ((name, group),) = groups(*manifests).items()
        assert name == "podgroup-u-web"
        assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (2, "2")
        assert group["metadata"]["annotations"] == {"volcano.sh/x": "y"}
        assert group["metadata"]["creationTimestamp"] == "2026-01-01T00:00:01Z"


def test_the_group_of_a_running_pod_is_running() -> None:
    placed = bare("a")
    placed["spec"] |= {"nodeName": "n", "schedulerName": "volcano"}
    placed["status"] = {"phase": "Running"}
    (group,) = groups(placed).values()
    assert group["status"]["phase"] == "Running"


def test_a_running_pod_without_a_scheduler_name_gets_no_group() -> None:
    placed = bare("a")
    placed["spec"]["nodeName"] = "n"
    assert not groups(placed)
    assert completed(placed)["Pod", "a"]["spec"]["schedulerName"] == "default-scheduler"
    member = bare("b", annotations={"scheduling.k8s.io/group-name": "g"})
    member["spec"]["nodeName"] = "n"
    assert completed(member)["Pod", "b"]["spec"]["schedulerName"] == "volcano"


def test_it_has_the_class_that_admission_gives_its_pod() -> None:
    (group,) = groups(bare("a"), priority_class("c", 7, globalDefault=True)).values()
    assert group["spec"]["priorityClassName"] == "c"


def test_a_group_may_be_of_a_class_of_the_system() -> None:
    """Every cluster has them: a group of such a class goes before others."""
    group: Manifest = {"kind": "PodGroup", "metadata": {"name": "z"}, "spec": {"minMember": 1}}
    group["spec"]["priorityClassName"] = "system-cluster-critical"
    low = {"kind": "PodGroup", "metadata": {"name": "a"}, "spec": {"minMember": 1}}
    pods = [bare(f"of-{n}", "2", annotations={"scheduling.k8s.io/group-name": n}) for n in "az"]
    simulation = Simulation([NODE, group, low, *pods])
    assert simulation.cycle(configuration(DEFAULT_TEXT, True)).bound == {"default/of-z": "n"}


def test_a_group_without_min_member_needs_none() -> None:
    simulation = Simulation([NODE, {"kind": "PodGroup", "metadata": {"name": "g"}}])
    assert simulation.cycle(configuration(DEFAULT_TEXT, True)).phases == {"default/g": "Completed"}
