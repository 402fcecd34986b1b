"""Pods of a profile with volumes and devices on the live scheduler, beside a Job of the session with devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.cluster import bound, cluster, job, until
from tests.e2e.test_profiles import CONFIG, pod
from volcano_py.api.kinds import JOB, PERSISTENTVOLUMECLAIM, POD, RESOURCECLAIM, RESOURCECLAIMTEMPLATE, STORAGECLASS
from volcano_py.kube.client import Client

_CLASS = {
    "metadata": {"name": "local"},
    "provisioner": "csi.sandbox",
    "volumeBindingMode": "WaitForFirstConsumer",
}
_DATA = {
    "metadata": {"name": "data"},
    "spec": {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
_ONE_GPU = {
    "metadata": {"name": "one-gpu"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.sandbox"}}]}}},
}
_WITH_GPU = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
_WITH_DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


async def phases(client: Client) -> dict[str, str]:
    found = await client.list(POD, "default")
    return {p["metadata"]["name"]: (p.get("status") or {}).get("phase", "") for p in found}


async def reason(client: Client, name: str) -> str:
    """Why a pod waits."""
    conditions = (await client.get(POD, name, "default"))["status"].get("conditions") or ()
    return next((str(c["message"]) for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


async def test_a_pod_with_a_volume_and_one_with_a_device_run(tmp_path: Path) -> None:
    shape, flags = "cpu=8,memory=16Gi,gpu=1:A100:80Gi", (f"--config={CONFIG}",)
    async with cluster(tmp_path, nodes=2, shape=shape, scheduler=flags) as (_, client):
        await client.create(STORAGECLASS, _CLASS)
        await client.create(RESOURCECLAIMTEMPLATE, _ONE_GPU, "default")
        await client.create(POD, pod("writer", "spread", "1", **_WITH_DATA), "default")

        async def waits_for_claim() -> bool:
            return 'persistentvolumeclaim "data" not found' in await reason(client, "writer")

        await until(waits_for_claim, "the condition does not name the missing claim")
        await client.create(PERSISTENTVOLUMECLAIM, _DATA, "default")
        await client.create(POD, pod("trainer", "spread", "1", **_WITH_GPU), "default")

        async def run() -> bool:
            found = await phases(client)
            return all(found.get(name) == "Running" for name in ("writer", "trainer"))

        await until(run, "the pods do not run")
        claim = await client.get(PERSISTENTVOLUMECLAIM, "data", "default")
        node = (await client.get(POD, "writer", "default"))["spec"]["nodeName"]
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
        assert claim["status"]["phase"] == "Bound"

        gang: dict[str, Any] = job("gang", 1, "1", seconds=3600)
        gang["spec"]["tasks"][0]["template"]["spec"] |= _WITH_GPU
        await client.create(JOB, gang, "default")

        async def gang_runs() -> bool:
            return await bound(client, "gang") == 1

        await until(gang_runs, "the Job does not get the other device")
        await client.create(POD, pod("late", "spread", "1", **_WITH_GPU), "default")
        await client.create(POD, pod("second", "packed", "1", **_WITH_DATA), "default")

        async def both_wait() -> bool:
            devices, volume = await reason(client, "late"), await reason(client, "second")
            return "cannot allocate all claims" in devices and "ReadWriteOncePod access mode" in volume

        await until(both_wait, "the reasons are not those of the plugins")
        await client.delete(POD, "trainer", "default")
        await client.delete(POD, "writer", "default")

        async def the_others_run() -> bool:
            found = await phases(client)
            return all(found.get(name) == "Running" for name in ("late", "second"))

        await until(the_others_run, "what was given back is not used")
        results = [
            (r["pool"], r["device"])
            for c in await client.list(RESOURCECLAIM, "default")
            for r in (c.get("status", {}).get("allocation") or {"devices": {"results": []}})["devices"]["results"]
        ]
        assert len(results) == len(set(results)) == 2

        # A claim that was allocated where its pod cannot go is allocated again.
        await client.create(RESOURCECLAIM, {"metadata": {"name": "stuck"}, "spec": _ONE_GPU["spec"]["spec"]}, "default")
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
        elsewhere = {"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": terms}}
        await client.patch(
            RESOURCECLAIM, "stuck", {"status": {"allocation": elsewhere}}, "default", subresource="status"
        )
        await client.delete(POD, "late", "default")
        stuck = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "stuck"}]}
        await client.create(POD, pod("moved", "spread", "1", **stuck), "default")

        async def moved() -> bool:
            return (await phases(client)).get("moved") == "Running"

        await until(moved, "the claim is not allocated again")
