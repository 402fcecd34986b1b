"""Claims of pods: made from templates, given back with their pods; no kubelet starts a pod before they are in order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.clients import MERGE, PODS, Http, pod
from volcano_py.sandbox.devices import Devices, slice_of
from volcano_py.sandbox.shapes import numbered, parse, published

Object = dict[str, Any]
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
REQUESTS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.sandbox"}}]}}


def template(name: str = "one") -> Object:
    return {"metadata": {"name": name}, "spec": {"spec": REQUESTS}}


def claiming(name: str, **row: str) -> Object:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "gpu", **row}]
    return made


def allocation(node: str = "node-0") -> Object:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    result = {"request": "r", "driver": "gpu.sandbox", "pool": node, "device": "gpu-0"}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }


async def reserve(api: Http, claim: str, of: Object, node: str = "node-0") -> None:
    meta = of["metadata"]
    consumer = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
    status = {"allocation": allocation(node), "reservedFor": [consumer]}
    await api.ok("PATCH", f"{CLAIMS}/{claim}/status", {"status": status}, kind=MERGE)


async def bind(api: Http, name: str, node: str = "node-0") -> None:
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    await api.ok("POST", f"{PODS}/{name}/binding", body)


async def test_a_pod_gets_a_claim_from_its_template_and_takes_it_along(api: Http) -> None:
    await api.ok("POST", PODS, claiming("a", resourceClaimTemplateName="one"))
    await api.ok("POST", TEMPLATES, template())
    found = await api.until(CLAIMS, lambda found: found["items"])
    (claim,) = found["items"]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.sandbox"
    made = {"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}
    await api.until(f"{PODS}/a", lambda p: p["status"].get("resourceClaimStatuses") == [made])
    await api.ok("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
    await api.until(CLAIMS, lambda found: not found["items"])


async def test_a_claim_is_deallocated_with_its_last_consumer(api: Http) -> None:
    await api.ok("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": REQUESTS})
    made = await api.ok("POST", PODS, claiming("a", resourceClaimName="c"))
    await reserve(api, "c", made)
    await api.ok("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
    await api.until(f"{CLAIMS}/c", lambda c: not c["status"].get("allocation") and not c["status"].get("reservedFor"))


@pytest.mark.parametrize("node", ["", "node-1"])
async def test_a_pod_does_not_start_before_its_claim_is_in_order(api: Http, node: str) -> None:
    await api.ok("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": REQUESTS})
    made = await api.ok("POST", PODS, claiming("a", resourceClaimName="c"))
    if node:
        await reserve(api, "c", made, node)
    await bind(api, "a")

    def waits(found: Object) -> bool:
        rows = found["status"].get("containerStatuses") or [{}]
        return (rows[0].get("state") or {}).get("waiting", {}).get("reason") == "ContainerCreating"

    await api.until(f"{PODS}/a", waits)
    await reserve(api, "c", made)
    await api.until(f"{PODS}/a", lambda p: p["status"]["phase"] == "Running")


def test_devices_of_a_shape() -> None:
    shape = parse("cpu=4,memory=8Gi,gpu=2:A100:80Gi,nic=1:")
    assert shape.devices == (Devices("gpu", 2, "A100", "80Gi"), Devices("nic", 1))
    assert shape.capacity == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    found = published(numbered(2, [shape, parse("cpu=1")]), [shape, parse("cpu=1")])
    assert [row["metadata"]["name"] for row in found] == ["node-0-gpu.sandbox", "node-0-nic.sandbox"]
    assert slice_of("n", shape.devices[0])["spec"]["devices"][1] == {
        "name": "gpu-1",
        "attributes": {"index": {"int": 1}, "model": {"string": "A100"}},
        "capacity": {"memory": {"value": "80Gi"}},
    }


@pytest.mark.parametrize("text", ["gpu=x:A100", "gpu=200:A100", "GPU=1:A100", "gpu=1:A100:much"])
def test_devices_that_cannot_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"gpu|GPU|quantities"):
        parse(text)
