"""Pre-bind steps as API calls, against the sandbox's API server: what they write, keep, and undo."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from volcano_py.api import core, dra, kinds, storage
from volcano_py.api.kinds import PODGROUP
from volcano_py.api.meta import format_time
from volcano_py.api.resource_types import NODE, PERSISTENTVOLUME, PERSISTENTVOLUMECLAIM, POD, RESOURCECLAIM
from volcano_py.kube import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.scheduler.dispatch.pre_bind.extended_claim_writes import create_extended
from volcano_py.scheduler.dispatch.pre_bind.pre_bind_writes import carry_out, undo
from volcano_py.scheduler.dispatch.pre_bind.step_objects import NotYet, StepFailed
from volcano_py.scheduler.model.jobs.pre_bind import (
    AllocateClaim,
    AwaitDevices,
    AwaitVolume,
    BindVolume,
    PreBindStep,
    SelectNode,
    StoreNode,
)

DATA = {"storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DISK = {
    "storageClassName": "none",
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/data"},
}
DEVICES = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "one"}]}}
OTHERS = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "two"}]}}


@pytest.fixture
async def api() -> AsyncIterator[Client]:
    """An API server without controllers."""
    async with (
        Sandbox(nodes=1, controllers=None, hollow=False) as sandbox,
        Client.for_flags(sandbox.kubeconfig) as made,
    ):
        yield made


async def claim(api: Client) -> str:
    """The uid of a new PersistentVolumeClaim."""
    body = {"metadata": {"name": "data"}, "spec": DATA}
    made = await api.create(PERSISTENTVOLUMECLAIM, body, "default", type=storage.PersistentVolumeClaim)
    return str(made.metadata.uid)


async def resource_claim(api: Client) -> str:
    """The uid of a new ResourceClaim."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    made = await api.create(RESOURCECLAIM, body, "default", type=dra.ResourceClaim)
    return str(made.metadata.uid)


async def read(api: Client, rt: Any, name: str) -> Any:
    return await api.get(rt, name, "default" if rt.namespaced else None, type=kinds.STRUCTS[rt])


async def fails(api: Client, step: PreBindStep, words: str) -> None:
    with pytest.raises(StepFailed, match=words):
        await carry_out(api, step)


async def test_a_node_is_selected_once_and_unselected(api: Client) -> None:
    uid = await claim(api)
    step = SelectNode("default", "data", uid, "node-0")
    await carry_out(api, step)
    first = await read(api, PERSISTENTVOLUMECLAIM, "data")
    assert first.metadata.annotations == {storage.SELECTED_NODE: "node-0"}
    await carry_out(api, step)
    again = await read(api, PERSISTENTVOLUMECLAIM, "data")
    assert again.metadata.resource_version == first.metadata.resource_version, "nothing is written twice"
    await fails(api, SelectNode("default", "data", uid, "node-1"), "being provisioned for node node-0")
    await undo(api, SelectNode("default", "data", uid, "node-1"))
    assert (await read(api, PERSISTENTVOLUMECLAIM, "data")).metadata.annotations == {storage.SELECTED_NODE: "node-0"}
    await undo(api, step)
    assert not (await read(api, PERSISTENTVOLUMECLAIM, "data")).metadata.annotations


async def test_a_deleted_or_changed_claim(api: Client) -> None:
    await fails(api, SelectNode("default", "data", "u", "node-0"), "was deleted")
    uid = await claim(api)
    await fails(api, SelectNode("default", "data", "older", "node-0"), "was deleted")
    await fails(api, SelectNode("default", "data", uid, "node-0", "1"), "has changed since")


async def test_waiting_for_a_volume(api: Client) -> None:
    uid = await claim(api)
    step = AwaitVolume("default", "data", uid, "node-0")
    await fails(api, step, "created no volume for node node-0")
    await carry_out(api, SelectNode("default", "data", uid, "node-0"))
    with pytest.raises(NotYet, match="has no volume yet"):
        await carry_out(api, step)
    body = {"metadata": {"annotations": {storage.BIND_COMPLETED: "yes"}}, "spec": {"volumeName": "pv"}}
    await api.patch(PERSISTENTVOLUMECLAIM, "data", body, "default")
    await carry_out(api, step)
    await undo(api, SelectNode("default", "data", uid, "node-0"))
    assert storage.SELECTED_NODE in (await read(api, PERSISTENTVOLUMECLAIM, "data")).metadata.annotations
    await fails(api, SelectNode("default", "data", uid, "node-1"), "bound to volume pv in the meantime")


async def test_a_volume_is_reserved_and_released(api: Client) -> None:
    uid = await claim(api)
    await api.create(PERSISTENTVOLUME, {"metadata": {"name": "pv"}, "spec": DISK})
    step = BindVolume("pv", "default", "data", uid)
    await carry_out(api, step)
    await carry_out(api, step)
    volume = await read(api, PERSISTENTVOLUME, "pv")
    assert (volume.spec.claim_ref.name, volume.spec.claim_ref.uid) == ("data", uid)
    await fails(api, BindVolume("pv", "default", "other", "u"), "bound to claim default/data in the meantime")
    await undo(api, BindVolume("pv", "default", "other", "u"))
    assert (await read(api, PERSISTENTVOLUME, "pv")).spec.claim_ref is not None
    await undo(api, step)
    volume = await read(api, PERSISTENTVOLUME, "pv")
    assert volume.spec.claim_ref is None and not volume.metadata.annotations
    await fails(api, BindVolume("gone", "default", "data", uid), "PersistentVolume gone was deleted")


async def test_a_volume_that_was_reserved_for_the_claim_stays_reserved(api: Client) -> None:
    uid = await claim(api)
    meant = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    await api.create(PERSISTENTVOLUME, {"metadata": {"name": "pv"}, "spec": {**DISK, "claimRef": meant}})
    step = BindVolume("pv", "default", "data", uid)
    await carry_out(api, step)
    await undo(api, step)
    assert (await read(api, PERSISTENTVOLUME, "pv")).spec.claim_ref.name == "data"


def allocate(uid: str, pod: str, allocation: Any = DEVICES) -> AllocateClaim:
    return AllocateClaim("default", "c", uid, pod, f"uid-{pod}", allocation)


async def test_a_claim_is_allocated_shared_and_deallocated(api: Client) -> None:
    uid = await resource_claim(api)
    first, second = allocate(uid, "a"), allocate(uid, "b", None)
    await fails(api, second, "deallocated in the meantime")
    for step in (first, first, second):
        await carry_out(api, step)
    found = await read(api, RESOURCECLAIM, "c")
    assert dra.same_devices(found.status.allocation, DEVICES) and found.metadata.finalizers == [dra.FINALIZER]
    assert [r.name for r in found.status.reserved_for] == ["a", "b"]
    await fails(api, allocate(uid, "x", OTHERS), "allocated in the meantime")
    await undo(api, allocate(uid, "x", OTHERS))
    await undo(api, first)
    found = await read(api, RESOURCECLAIM, "c")
    assert found.status.allocation and [r.name for r in found.status.reserved_for] == ["b"]
    await undo(api, second)
    found = await read(api, RESOURCECLAIM, "c")
    assert not found.status.allocation and not found.status.reserved_for and not found.metadata.finalizers


async def test_a_deleted_claim(api: Client) -> None:
    await fails(api, allocate("u", "a"), "was deleted")
    await undo(api, allocate("u", "a"))
    assert (await api.list(NODE)).items


async def test_waiting_for_the_binding_conditions_of_devices(api: Client) -> None:
    step = AwaitDevices("default", "c", "")
    await fails(api, step, "was deleted or deallocated")
    uid = await resource_claim(api)
    device = {"driver": "d", "pool": "p", "device": "one"}
    result = {"request": "r", **device, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    allocate = AllocateClaim("default", "c", uid, "web", "pod-uid", {"devices": {"results": [result]}})
    await carry_out(api, allocate)
    found = await read(api, RESOURCECLAIM, "c")
    assert found.status.allocation["allocationTimestamp"], "others see since when devices are awaited"
    with pytest.raises(NotYet, match="binding conditions of its devices are not true"):
        await carry_out(api, step)
    for conditions, ended in (
        ([_condition("Attached", "False")], NotYet),
        ([_condition("Attached", "True"), _condition("Broken", "True")], StepFailed),
        ([_condition("Attached", "True"), _condition("Broken", "False")], None),
    ):
        body = {"status": {"devices": [{**device, "conditions": conditions}]}}
        await api.patch(RESOURCECLAIM, "c", body, "default", "merge", "status")
        if ended is None:
            await carry_out(api, step)
        else:
            with pytest.raises(ended, match="Broken: Why" if ended is StepFailed else "not true"):
                await carry_out(api, step)
    await undo(api, allocate)
    found = await read(api, RESOURCECLAIM, "c")
    assert (found.status.allocation, found.status.devices) == (None, None)
    await fails(api, step, "was deleted or deallocated")


async def test_devices_are_awaited_since_their_allocation(api: Client) -> None:
    uid = await resource_claim(api)
    result = {"request": "r", "driver": "d", "pool": "p", "device": "one", "bindingConditions": ["Attached"]}
    await carry_out(api, AllocateClaim("default", "c", uid, "web", "pod-uid", {"devices": {"results": [result]}}))
    body = {"status": {"allocation": {"allocationTimestamp": format_time(time.time() - 100)}}}
    await api.patch(RESOURCECLAIM, "c", body, "default", "merge", "status")
    with pytest.raises(NotYet):
        await carry_out(api, AwaitDevices("default", "c", uid, timeout=110.0))
    await fails(api, AwaitDevices("default", "c", uid, timeout=90.0), "not ready 90 seconds after their allocation")


async def test_a_claim_for_extended_resources_is_created_once_and_deleted(api: Client) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    pod = await api.create(POD, body, "default", type=core.Pod)
    request = {"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu", "count": 1}}
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    extended = {"requests": [request], "mappings": [mapping]}
    result = {"request": "container-0-request-0", "driver": "d", "pool": "p", "device": "one"}
    allocation = {"devices": {"results": [result]}}
    step = AllocateClaim("default", "made", "", "web", pod.metadata.uid, allocation, extended=extended)
    await carry_out(api, step)
    first = await read(api, RESOURCECLAIM, "made")
    assert first.metadata.controller.uid == pod.metadata.uid
    assert [r.uid for r in first.status.reserved_for] == [pod.metadata.uid]
    assert dra.same_devices(first.status.allocation, allocation)
    stated = (await api.get(POD, "web", "default"))["status"]["extendedResourceClaimStatus"]
    assert stated == {"resourceClaimName": "made", "requestMappings": [mapping]}
    await carry_out(api, step)
    assert (await read(api, RESOURCECLAIM, "made")).metadata.resource_version == first.metadata.resource_version
    since_read = await create_extended(api, step, None)
    assert since_read.metadata.uid == first.metadata.uid
    other = AllocateClaim("default", "made", "", "web", "another", allocation, extended=extended)
    await fails(api, other, "is not the claim of this pod")
    await undo(api, step)
    assert await api.list(RESOURCECLAIM, "default") == []
    await undo(api, step)


def _condition(name: str, value: str) -> dict[str, str]:
    since = "2026-01-01T00:00:00Z"
    return {"type": name, "status": value, "reason": "Why", "message": "", "lastTransitionTime": since}


async def test_the_node_of_a_pod_is_stored_once_and_removed_by_the_undo(api: Client) -> None:
    made = await api.create(PODGROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
    step = StoreNode("default", "g", made["metadata"]["uid"], "volcano.sh/sticky-node.g-0", "n1")

    async def stored() -> str:
        found = await api.get(PODGROUP, "g", "default")
        return str((found["metadata"].get("annotations") or {}).get(step.annotation, ""))

    await carry_out(api, step)
    version = (await api.get(PODGROUP, "g", "default"))["metadata"]["resourceVersion"]
    await carry_out(api, step)
    assert await stored() == "n1"
    assert (await api.get(PODGROUP, "g", "default"))["metadata"]["resourceVersion"] == version
    other = StoreNode(step.namespace, step.group, step.uid, step.annotation, "n2")
    with pytest.raises(StepFailed, match=r"another node in the annotation volcano.sh/sticky-node.g-0: n1"):
        await carry_out(api, other)
    await undo(api, other)
    assert await stored() == "n1"
    await undo(api, step)
    assert await stored() == ""
    with pytest.raises(StepFailed, match="was deleted"):
        await carry_out(api, StoreNode("default", "gone", "", step.annotation, "n1"))
    await undo(api, StoreNode("default", "gone", "", step.annotation, "n1"))
