"""Extended resources of DeviceClasses on the live scheduler: a gang of the session, and pods of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.cluster import bound, cluster, job, until
from tests.e2e.test_profile_claims import phases, reason
from tests.e2e.test_profiles import CONFIG, pod
from volcano_py.api.kinds import JOB, POD, RESOURCECLAIM
from volcano_py.kube.client import Client

GPU = "sandbox/gpu"


def with_gpus(spec: dict[str, Any], number: int) -> None:
    resources = spec["containers"][0].setdefault("resources", {})
    resources.setdefault("requests", {})[GPU] = str(number)
    resources.setdefault("limits", {})[GPU] = str(number)


async def devices_of(client: Client, name: str) -> list[str]:
    """The devices that a pod's status names, of the claim that the scheduler created."""
    stated = (await client.get(POD, name, "default"))["status"]["extendedResourceClaimStatus"]
    claim = await client.get(RESOURCECLAIM, stated["resourceClaimName"], "default")
    requests = [m["requestName"] for m in stated["requestMappings"]]
    assert claim["metadata"]["ownerReferences"][0]["name"] == name
    assert claim["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
    results = claim["status"]["allocation"]["devices"]["results"]
    assert [r["request"] for r in results] == requests * (len(results) // len(requests))
    return [f"{r['pool']}/{r['device']}" for r in results]


async def test_pods_that_request_an_extended_resource_run_with_devices(tmp_path: Path) -> None:
    shape, flags = "cpu=8,memory=16Gi,gpu=2:A100:80Gi:later", (f"--config={CONFIG}",)
    async with cluster(tmp_path, nodes=2, shape=shape, scheduler=flags) as (_, client):
        gang = job("gang", 2, "1", seconds=3600)
        with_gpus(gang["spec"]["tasks"][0]["template"]["spec"], 1)
        await client.create(JOB, gang, "default")

        async def gang_runs() -> bool:
            return await bound(client, "gang") == 2

        await until(gang_runs, "the gang does not get its devices")
        of_profile = pod("trainer", "spread", "1")
        with_gpus(of_profile["spec"], 1)
        await client.create(POD, of_profile, "default")

        async def trainer_runs() -> bool:
            return (await phases(client)).get("trainer") == "Running"

        await until(trainer_runs, "the pod of a profile does not run")
        names = sorted(name for name in await phases(client))
        devices = [device for name in names for device in await devices_of(client, name)]
        assert len(devices) == len(set(devices)) == 3

        late = pod("late", "spread", "1")
        with_gpus(late["spec"], 2)
        await client.create(POD, late, "default")

        async def late_waits() -> bool:
            return "cannot allocate all claims" in await reason(client, "late")

        await until(late_waits, "the reason is not the resource")
        await client.delete(JOB, "gang", "default")

        async def late_runs() -> bool:
            return (await phases(client)).get("late") == "Running"

        await until(late_runs, "the devices of the gang are not used again")
        assert len(await devices_of(client, "late")) == 2
