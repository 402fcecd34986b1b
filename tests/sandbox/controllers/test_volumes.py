"""Claims and volumes: found, made, waiting for a pod, protected, reclaimed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.sandbox.clients import MERGE, PODS, Http, pod
from tests.sandbox.controllers.objects import APPS, workload
from volcano_py.sandbox.controllers.storage.volume_match import default_class, find

Object = dict[str, Any]
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def claim(name: str = "data", storage_class: str | None = "fast", **spec: Any) -> Object:
    body: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    if storage_class is not None:
        body["storageClassName"] = storage_class
    return {"metadata": {"name": name, "namespace": "default", "uid": "u"}, "spec": body}


def volume(name: str, storage: str = "1Gi", storage_class: str = "fast", **spec: Any) -> Object:
    body = {"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    source = {"hostPath": {"path": "/tmp/data"}}
    return {"metadata": {"name": name}, "spec": {**body, **source, **spec}}


def on_zone(zone: str) -> Object:
    row = {"key": "zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [row]}]}}


def reserved(name: str, uid: str = "") -> Object:
    return {"namespace": "default", "name": name, **({"uid": uid} if uid else {})}


@pytest.mark.parametrize(
    ("wanted", "volumes", "expected"),
    [
        (claim(), [], None),
        (claim(), [volume("large", "5Gi"), volume("right", "2Gi"), volume("small", "500Mi")], "right"),
        (claim(), [volume("other", storage_class="slow")], None),
        (claim(storage_class=""), [volume("none", storage_class="")], "none"),
        (claim(accessModes=["ReadWriteMany"]), [volume("one")], None),
        (claim(), [volume("block", volumeMode="Block")], None),
        (claim(), [volume("taken", claimRef=reserved("other", "x"))], None),
        (claim(), [volume("ours", "9Gi", claimRef=reserved("data")), volume("free")], "ours"),
        (claim(), [volume("of-an-older-one", claimRef=reserved("data", "older"))], None),
        (claim(), [volume("near", nodeAffinity=on_zone("a"))], "near"),
        (claim(), [volume("far", nodeAffinity=on_zone("b"))], None),
        (claim(selector={"matchLabels": {"x": "y"}}), [volume("plain")], None),
    ],
)
def test_the_smallest_that_fits(wanted: Object, volumes: list[Object], expected: str | None) -> None:
    found = find(wanted, volumes, {"zone": "a"})
    assert (found["metadata"]["name"] if found else None) == expected


def test_the_newest_default_class_counts() -> None:
    key = "storageclass.kubernetes.io/is-default-class"

    def row(name: str, made: str, value: str) -> Object:
        return {"metadata": {"name": name, "creationTimestamp": made, "annotations": {key: value}}}

    rows = [row("a", "2026-01-01T00:00:00Z", "true"), row("b", "2026-01-02T00:00:00Z", "true")]
    found = default_class([*rows, row("c", "2026-01-03T00:00:00Z", "false")])
    assert found is not None and found["metadata"]["name"] == "b" and default_class([]) is None


async def make_class(api: Http, mode: str = "Immediate", default: bool = False, **fields: Any) -> None:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    body = {"metadata": {"name": "fast", "annotations": notes}, "provisioner": "example.com/disk", **fields}
    await api.ok("POST", CLASSES, {**body, "volumeBindingMode": mode})


def bound(value: Object) -> bool:
    return value.get("status", {}).get("phase") == "Bound"


def gone(value: Object) -> bool:
    return value.get("code") == 404


async def test_a_class_provisions_and_deletes_volumes(api: Http) -> None:
    await api.ok("POST", CLAIMS, claim())
    events = "/api/v1/namespaces/default/events?fieldSelector=reason%3DProvisioningFailed"
    await api.until(events, lambda v: v["items"])
    await make_class(api)
    made = await api.until(CLAIMS + "/data", bound)
    assert made["status"]["capacity"] == {"storage": "1Gi"}
    path = f"{VOLUMES}/{made['spec']['volumeName']}"
    there = await api.until(path, bound)
    assert there["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]
    assert there["spec"]["hostPath"]["path"].startswith("/var/lib/volumes/pvc-"), "no name of a CSI driver"
    await api.ok("DELETE", CLAIMS + "/data")
    await api.until(CLAIMS + "/data", gone)
    await api.until(path, gone)


async def test_a_default_class_is_given_to_claims_that_name_none(api: Http) -> None:
    await api.ok("POST", CLAIMS, claim(storage_class=None))
    await asyncio.sleep(0.1)
    assert (await api.ok("GET", CLAIMS + "/data"))["status"]["phase"] == "Pending"
    await make_class(api, default=True)
    assert (await api.until(CLAIMS + "/data", bound))["spec"]["storageClassName"] == "fast"


async def test_an_existing_volume_is_kept_afterwards(api: Http) -> None:
    await api.ok("POST", CLAIMS, claim(storage_class="manual"))
    await api.ok("POST", VOLUMES, volume("disk", "2Gi", "manual"))
    made = await api.until(CLAIMS + "/data", bound)
    assert made["spec"]["volumeName"] == "disk" and made["status"]["capacity"] == {"storage": "2Gi"}
    await api.ok("DELETE", VOLUMES + "/disk")
    await asyncio.sleep(0.1)
    assert (await api.ok("GET", VOLUMES + "/disk"))["metadata"]["deletionTimestamp"], "it is in use"
    await api.ok("DELETE", CLAIMS + "/data")
    await api.until(VOLUMES + "/disk", gone)
    await api.ok("POST", VOLUMES, volume("second", "2Gi", "manual"))
    await api.ok("POST", CLAIMS, claim(storage_class="manual"))
    await api.until(CLAIMS + "/data", bound)
    await api.ok("DELETE", CLAIMS + "/data")
    await api.until(VOLUMES + "/second", lambda v: v["status"]["phase"] == "Released")


async def test_it_waits_for_its_first_consumer(api: Http) -> None:
    await make_class(api, "WaitForFirstConsumer")
    await api.ok("POST", CLAIMS, claim())
    user = pod("user", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    await api.ok("POST", PODS, user)
    await asyncio.sleep(0.2)
    assert (await api.ok("GET", CLAIMS + "/data"))["status"]["phase"] == "Pending"
    await api.ok("POST", PODS + "/user/binding", {"metadata": {"name": "user"}, "target": {"name": "node-0"}})
    await api.until(CLAIMS + "/data", bound)
    await api.ok("POST", CLAIMS, claim("other"))
    chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}}
    await api.ok("PATCH", CLAIMS + "/other", chosen, MERGE)
    made = await api.until(CLAIMS + "/other", bound)
    there = await api.ok("GET", f"{VOLUMES}/{made['spec']['volumeName']}")
    assert there["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "node-1"


async def test_a_claim_in_use_stays(api: Http) -> None:
    await make_class(api)
    await api.ok("POST", CLAIMS, claim())
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    await api.ok("POST", PODS, pod("user", nodeName="node-0", volumes=volumes))
    await api.until(PODS + "/user", lambda v: v["status"]["phase"] == "Running")
    await api.ok("DELETE", CLAIMS + "/data")
    await asyncio.sleep(0.1)
    assert (await api.ok("GET", CLAIMS + "/data"))["metadata"]["deletionTimestamp"]
    await api.ok("DELETE", PODS + "/user")
    await api.until(CLAIMS + "/data", gone)


async def test_a_claim_whose_volume_is_gone_is_lost(api: Http) -> None:
    await make_class(api)
    await api.ok("POST", CLAIMS, claim())
    made = await api.until(CLAIMS + "/data", bound)
    path = f"{VOLUMES}/{made['spec']['volumeName']}"
    await api.ok("DELETE", path)
    await api.ok("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    await api.until(CLAIMS + "/data", lambda v: v["status"]["phase"] == "Lost")


async def test_a_stateful_set_and_its_namespace_go_whole(api: Http) -> None:
    await make_class(api)
    await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "lab"}})
    template = claim()
    template["metadata"] = {"name": "data"}
    body = workload("StatefulSet", "web", 2, volumeClaimTemplates=[template])
    lab = APPS.replace("default", "lab")
    await api.ok("POST", lab + "/statefulsets", body)
    await api.until(lab + "/statefulsets/web", lambda v: v["status"].get("readyReplicas") == 2)
    claims = CLAIMS.replace("default", "lab")
    await api.until(claims, lambda v: len(v["items"]) == 2 and all(map(bound, v["items"])))
    await api.ok("DELETE", "/api/v1/namespaces/lab")
    await api.until("/api/v1/namespaces/lab", gone)
    await api.until(VOLUMES, lambda v: not v["items"])
