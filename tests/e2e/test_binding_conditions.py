"""Devices that are ready only after their allocation, with the real scheduler; the test is their driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import cluster, job, pods_of, until
from volcano_py.api.kinds import JOB
from volcano_py.api.resource_types import DEVICECLASS, EVENT, RESOURCECLAIM, RESOURCECLAIMTEMPLATE, RESOURCESLICE
from volcano_py.kube import Client

pytestmark = pytest.mark.slow

DRIVER = "slow.example"
READY, FAILED = "example/Ready", "example/Failed"


async def publish(client: Client) -> None:
    """One device on each of two nodes, a class for them, and a template for claims."""
    for node in ("node-0", "node-1"):
        device = {"name": "d", "bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [device]}
        await client.create(RESOURCESLICE, {"metadata": {"name": f"{node}-slow"}, "spec": spec})
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await client.create(DEVICECLASS, {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}})
    request = {"name": "d", "exactly": {"deviceClassName": DRIVER}}
    template = {"metadata": {"name": "slow"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await client.create(RESOURCECLAIMTEMPLATE, template, "default")


def claiming_job() -> dict[str, Any]:
    manifest = job("claimer", 1, "1", seconds=600)
    spec = manifest["spec"]["tasks"][0]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": "slow"}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "d"}]
    return manifest


async def allocated(client: Client) -> dict[str, Any] | None:
    """The claim, once it is allocated and its driver has not reported conditions yet."""
    claims = list(await client.list(RESOURCECLAIM, "default"))
    status = claims[0].get("status") or {} if claims else {}
    return claims[0] if status.get("allocation") and not status.get("devices") else None


async def report(client: Client, claim: dict[str, Any], condition: str) -> str:
    """Set a condition of the claim's device, as its driver does; returns the node of the device."""
    result = claim["status"]["allocation"]["devices"]["results"][0]
    row = {
        "type": condition,
        "status": "True",
        "reason": "Tested",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    device = {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [row]}
    meta = claim["metadata"]
    await client.patch(
        RESOURCECLAIM, meta["name"], {"status": {"devices": [device]}}, meta["namespace"], "merge", "status"
    )
    pool: str = result["pool"]
    return pool


async def test_a_bind_waits_for_devices_and_a_failed_one_is_replaced(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=2) as (_, client):
        await publish(client)
        await client.create(JOB, claiming_job(), "default")
        claim = await until(lambda: allocated(client), "the claim is not allocated")
        assert claim["status"]["allocation"]["allocationTimestamp"]

        async def event() -> bool:
            return any(e["reason"] == "BindingConditionsPending" for e in await client.list(EVENT, "default"))

        await until(event, "no Event states that the bind waits")
        assert not (await pods_of(client, "claimer"))[0]["spec"].get("nodeName"), "bound before the device is ready"

        await report(client, claim, FAILED)
        claim = await until(lambda: allocated(client), "the claim of the failed device is not allocated again")
        assert not (await pods_of(client, "claimer"))[0]["spec"].get("nodeName")
        node = await report(client, claim, READY)

        async def bound() -> bool:
            return (await pods_of(client, "claimer"))[0]["spec"].get("nodeName") == node

        await until(bound, "the pod is not bound although its device is ready")
