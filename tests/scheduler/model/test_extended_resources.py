"""Extended resources that DeviceClasses provide: the requests of the claims, the amounts of nodes, and whole cycles."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api import core, dra
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.claims.extended_resources import ExtendedResources, claim_key
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

GPU = "example.com/gpu"


def container(name: str, gpus: int = 0, sidecar: bool = False, **others: int) -> core.Container:
    requests: core.ResourceList = {"cpu": 1, **({GPU: str(gpus)} if gpus else {}), **others}
    made = core.Container(name=name, resources=core.ResourceRequirements(requests=requests))
    made.restart_policy = "Always" if sidecar else None
    return made


def resources(*classes: dra.DeviceClass) -> ExtendedResources:
    found = ExtendedResources({"DeviceClass": {c.metadata.name: c for c in classes}})
    found.switch(True)
    return found


def device_class(name: str, resource: str | None = GPU, created: str = "2026-01-01T00:00:00Z") -> dra.DeviceClass:
    return dra.DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created),
        spec=dra.DeviceClassSpec(extended_resource_name=resource),
    )


@pytest.mark.parametrize(
    ("inits", "containers", "requests", "mappings"),
    [
        ([], [("a", 2), ("b", 0)], {"container-0-request-1": 2}, {("a", "container-0-request-1")}),
        # What a container that starts later has, an init container can use before.
        (
            [("i", 2)],
            [("a", 2)],
            {"container-1-request-1": 2},
            {("a", "container-1-request-1"), ("i", "container-1-request-1")},
        ),
        # Only the largest request of init containers is made in addition.
        (
            [("i", 3), ("j", 4)],
            [("a", 1)],
            {"container-1-request-1": 3, "container-2-request-1": 1},
            {
                ("a", "container-2-request-1"),
                ("i", "container-2-request-1"),
                ("i", "container-1-request-1"),
                ("j", "container-2-request-1"),
                ("j", "container-1-request-1"),
            },
        ),
        # A sidecar keeps its devices; an init container before it can use them, one after it cannot.
        (
            [("i", 1), ("s", 1, True), ("j", 1)],
            [("a", 0)],
            {"container-1-request-1": 1, "container-2-request-1": 1},
            {("s", "container-1-request-1"), ("i", "container-1-request-1"), ("j", "container-2-request-1")},
        ),
    ],
)
def test_the_requests_of_a_claim(inits: Any, containers: Any, requests: Any, mappings: Any) -> None:
    pod = core.Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u"))
    pod.spec.init_containers = [container(*row) for row in inits]
    pod.spec.containers = [container(*row) for row in containers]
    of = resources(device_class("gpu"))
    assert of.of_pod(pod) == [GPU]
    claim = of.claim_of(pod, [GPU])
    assert {r.name: r.exactly.count for r in claim.requests if r.exactly} == requests
    assert {(m["containerName"], m["requestName"]) for m in claim.mappings} == mappings
    assert {m["resourceName"] for m in claim.mappings} == {GPU}


def test_the_newest_class_provides_a_resource() -> None:
    newer, older = device_class("b", created="2026-01-02T00:00:00Z"), device_class("a")
    assert resources(newer, older).classes[GPU] == "b"
    assert resources(device_class("b"), older).classes[GPU] == "a", "the first by name, of equally old ones"
    assert resources(device_class("x", None)).classes == {"deviceclass.resource.kubernetes.io/x": "x"}


def test_the_name_of_a_claim_is_valid_and_the_same_in_each_attempt() -> None:
    pod = core.Pod(metadata=ObjectMeta(name="p" * 200, namespace="default", uid="u"))
    name = claim_key(pod).partition("/")[2]
    assert len(name) == 63 and claim_key(pod) == claim_key(pod)
    pod.metadata.uid = "other"
    assert claim_key(pod).partition("/")[2] != name


def world(devices: int = 3, **more: Any) -> Simulation:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    rows = [{"name": f"d{i}"} for i in range(devices)]
    described = {
        "nodes": {"n1": {}, "n2": {}},
        "objects": [
            {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}},
            {
                "kind": "ResourceSlice",
                "metadata": {"name": "n1"},
                "spec": {"driver": "d.example.com", "nodeName": "n1", "pool": pool, "devices": rows},
            },
        ],
        **more,
    }
    return Simulation(manifests(described), now=1000.0)


def conf(*actions: str) -> Any:
    return load(
        configuration({"actions": ", ".join(actions), "plugins": [["priority", "gang"], ["predicates"]]}),
        REGISTRY.actions,
    )


def claims(of: Simulation) -> dict[str, str]:
    """The devices of each pod, by the claims that were created."""
    return {
        o["metadata"]["ownerReferences"][0]["name"]: " ".join(
            r["device"] for r in dra.results((o.get("status") or {}).get("allocation"))
        )
        for (kind, _), o in of.objects.items()
        if kind == "ResourceClaim"
    }


def test_a_claim_is_created_and_stated_in_the_pod() -> None:
    of = world(jobs={"g": {"each": {"cpu": 1, GPU: 2}}})
    assert of.cycle(conf("enqueue", "allocate")).bound == {"default/g-0": "n1"}
    assert claims(of) == {"g-0": "d0 d1"}
    stated = of.objects["Pod", "default/g-0"]["status"]["extendedResourceClaimStatus"]
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-1"}
    assert [{**m, "containerName": "c"} for m in stated["requestMappings"]] == [mapping]
    of.drop("Pod", "default/g-0")
    assert not of.cluster.claims.resource_claims.assumed


def test_a_pod_preempts_the_devices_of_an_extended_resource() -> None:
    of = world(
        jobs={"low": {"min": 0, "pods": 3, "priority": "low", "each": {"cpu": 1, GPU: 1}}},
        priorities={"high": 100, "low": 1},
    )
    assert len(of.cycle(conf("enqueue", "allocate")).bound) == 3
    for pod in [o for (kind, _), o in of.objects.items() if kind == "Pod"]:
        pod["status"]["phase"] = "Running"
        of.put(pod)
    for manifest in manifests({"jobs": {"high": {"priority": "high", "each": {"cpu": 1, GPU: 2}}}}):
        of.put(manifest)
    done = of.cycle(conf("enqueue", "allocate", "preempt"))
    assert (len(done.evicted), done.pipelined) == (2, {"default/high-0": "n1"})
    bound = of.cycle(conf("enqueue", "allocate", "preempt")).bound
    assert bound == {"default/high-0": "n1"}
    assert sorted(" ".join(claims(of).values()).split()) == ["d0", "d1", "d2"]


def test_what_nodes_offer_follows_classes_and_slices() -> None:
    of = world(jobs={"g": {"each": {"cpu": 1, GPU: 1}}})
    cluster = of.cluster
    cluster.claims.settle()
    assert cluster.nodes.total()[GPU] == 3000.0
    of.objects["ResourceSlice", "n1"]["spec"]["devices"].append(
        {
            "name": "shared",
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": "4", "requestPolicy": {"default": "1"}}},
        }
    )
    of.objects["ResourceSlice", "n1"]["spec"]["devices"][0]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    of.put(of.objects["ResourceSlice", "n1"])
    cluster.claims.settle()
    assert cluster.nodes.total()[GPU] == 6000.0, "four claims can share one device, and one device is tainted"
    assert cluster.tasks["default/g-0"].claims.devices is not None
    of.drop("DeviceClass", "gpu")
    cluster.claims.settle()
    assert cluster.nodes.total()[GPU] == 0.0
    assert cluster.tasks["default/g-0"].claims.devices is None
