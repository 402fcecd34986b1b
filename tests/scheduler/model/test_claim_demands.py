"""Volumes, devices, their claims and the pods that use them arrive in any order: what each pod demands is what follows
from the last objects."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as s

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, BindVolume, SelectNode
from volcano_py.scheduler.model.plan import Bind
from volcano_py.simulate.manifests import as_struct

Manifest = dict[str, Any]


def pod(name: str, volume: str, device: str) -> Manifest:
    spec: Manifest = {"schedulerName": "volcano", "containers": [{"name": "c"}]}
    if volume:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": volume}}]
    if device:
        spec["resourceClaims"] = [{"name": "d", "resourceClaimName": device}]
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def claim(name: str, of_class: str, volume: str) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "default", "uid": name}
    spec: Manifest = {"storageClassName": of_class, "accessModes": ["ReadWriteOnce"]}
    if volume:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(name: str, of_class: str, claimed: str) -> Manifest:
    spec: Manifest = {"storageClassName": of_class, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    if claimed:
        spec["claimRef"] = {"namespace": "default", "name": claimed, "uid": claimed}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def device_claim(name: str, device: str) -> Manifest:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dev"}}]}}
    results = [{"request": "r", "driver": "dev", "pool": "n1", "device": device}]
    status = {"allocation": {"devices": {"results": results}}} if device else {}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": spec,
        "status": status,
    }


def storage_class(name: str, mode: str) -> Manifest:
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "csi.example.com" if name == "made" else "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }


OBJECTS: list[Manifest] = [
    *(pod(name, v, d) for name, v, d in product(("p0", "p1", "p2"), ("", "c0", "c1"), ("", "d0"))),
    *(claim(name, of, v) for name, of, v in product(("c0", "c1"), ("local", "made"), ("", "v0"))),
    *(volume(name, of, c) for name, of, c in product(("v0", "v1"), ("local", "made"), ("", "c0"))),
    *(device_claim("d0", device) for device in ("", "x")),
    *(storage_class(name, mode) for name, mode in product(("local", "made"), ("WaitForFirstConsumer", "Immediate"))),
    {"kind": "DeviceClass", "metadata": {"name": "dev"}, "spec": {}},
    {
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n1", "allocatable": {"count": 2}}]},
    },
]
STEPS = [
    Bind("default", "p0", "p0", "n1", "", steps=steps)
    for steps in (
        (BindVolume("v1", "default", "c1", "c1", "1"),),
        (SelectNode("default", "c0", "c0", "n1"),),
    )
]


@given(
    s.lists(s.tuples(s.sampled_from((*OBJECTS, *STEPS)), s.sampled_from(("put", "put", "put", "remove"))), max_size=30)
)
def test_each_pod_demands_what_follows_from_the_last_objects(events: list[tuple[Any, str]]) -> None:
    model = Cluster(features=frozenset(("DynamicResourceAllocation",)))
    assumed: list[Bind] = []
    for what, how in events:
        if isinstance(what, Bind):
            if how == "put" and what not in assumed:
                assumed.append(what)
                model.claims.assume(what)
            elif how == "remove" and what in assumed:
                assumed.remove(what)
                model.claims.forget(what)
        elif how == "put":
            model.upsert(what["kind"], as_struct(what))
        else:
            model.remove(what["kind"], what["metadata"].get("namespace", ""), what["metadata"]["name"])
        model.claims.settle()
        for task in model.tasks.values():
            assert task.claims == model.claims.demand(task.pod)
            assert task.spec_class is model.classes.of(task.pod, task.claims)


def test_devices_of_a_claim_that_was_released_unseen_are_free() -> None:
    """The watch of claims ended, and the new list has the claim as it was before its allocation. The devices were not
    free again before a restart. Found by the simulation."""
    model = Cluster(features=frozenset(("DynamicResourceAllocation",)))
    claims = model.claims.resource_claims
    allocation = {"devices": {"results": [{"request": "r", "driver": "dev", "pool": "n1", "device": "x"}]}}
    step = AllocateClaim("default", "d0", "d0", "p0", "p0", allocation)

    def put(manifest: Manifest, version: str, *finalizers: str) -> None:
        metadata = {**manifest["metadata"], "resourceVersion": version, "finalizers": [*finalizers]}
        model.upsert(manifest["kind"], as_struct({**manifest, "metadata": metadata}))

    for gone, listed in product((False, True), (False, True)):
        model.remove("ResourceClaim", "default", "d0")
        put(device_claim("d0", ""), "1")
        put(pod("p0", "", "d0"), "1")
        model.claims.assume(Bind("default", "p0", "p0", "n1", "", steps=(step,)))
        assert claims.used()
        put(device_claim("d0", ""), "2", "resource.kubernetes.io/delete-protection")
        assert claims.used(), "it is being allocated"
        if listed:
            put(device_claim("d0", ""), "5")
            assert claims.used(), "the pod may still run"
        if gone:
            model.remove("Pod", "default", "p0")
        else:
            ended = pod("p0", "", "d0")
            put({**ended, "status": {"phase": "Succeeded"}}, "6")
        if not listed:
            assert claims.used(), "the claim is not released yet"
            put(device_claim("d0", ""), "5")
        assert not claims.used() and not claims.assumed
