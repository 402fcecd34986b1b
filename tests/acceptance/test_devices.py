"""Devices by claims (dynamic resource allocation), and quotas of device classes.

Each test has nodes and devices of its own, so it needs simulated nodes: the sandbox, or `volcano-py sandbox nodes`.
Real nodes run such pods only with a DRA driver.
"""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from tests.acceptance.covers import covers
from tests.acceptance.site import MARKS, Manifest, Site, node, task
from volcano_py.api.kinds import (
    DEVICECLASS,
    JOB,
    QUEUE,
    RESOURCECLAIM,
    RESOURCECLAIMTEMPLATE,
    RESOURCESLICE,
)
from volcano_py.sandbox.cluster import Sandbox

pytestmark = MARKS
DRIVER = "gpu.example.com"
DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
QUOTA = """
actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
QUICK = ("sleep", "1")


@pytest.fixture(scope="module")
def cluster(cluster_without_nodes: Sandbox | None) -> Sandbox | None:
    """Each test has nodes of its own."""
    return cluster_without_nodes


class Devices:
    """Nodes with devices, a device class, and claims for it."""

    def __init__(self, at: Site) -> None:
        self.at = at
        self.device_class = at.name("gpu")

    async def nodes(self, devices: dict[str, int], **device: Any) -> None:
        """Nodes, each with a number of devices of the test's class."""
        for name, count in devices.items():
            full = self.at.name(name)
            await self.at.create(node(full, "8"))
            rows = [
                {"name": f"d{i}", "attributes": {"of": {"string": self.at.namespace}}, **device} for i in range(count)
            ]
            pool = {"name": full, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": full, "pool": pool, "devices": rows}
            await self._create(RESOURCESLICE, f"{name}-gpus", spec)

    async def make_class(self, expression: str = "") -> None:
        """The class of these devices. `expression`: another selector."""
        own = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].of == "{self.at.namespace}"'
        await self._create(DEVICECLASS, "gpu", {"selectors": [{"cel": {"expression": expression or own}}]})

    async def _create(self, rt: Any, name: str, spec: Manifest) -> None:
        metadata = {"name": self.at.name(name)}
        await self.at.create({"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata, "spec": spec})

    def request(self, count: int = 1, **more: Any) -> Manifest:
        exactly = {"deviceClassName": self.device_class, "count": count, **more}
        return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}

    async def claim(self, name: str, spec: Manifest | None = None) -> None:
        head = {"apiVersion": RESOURCECLAIM.api_version, "kind": "ResourceClaim", "metadata": {"name": name}}
        await self.at.create({**head, "spec": spec or self.request()})

    async def template(self, name: str, spec: Manifest | None = None) -> None:
        rt = RESOURCECLAIMTEMPLATE
        head = {"apiVersion": rt.api_version, "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
        await self.at.create({**head, "spec": {"spec": spec or self.request()}})

    async def claims(self) -> list[Manifest]:
        return list(await self.at.client.list(RESOURCECLAIM, self.at.namespace))

    async def state(self, name: str) -> tuple[int, int]:
        """The number of allocated devices of a claim, and of its consumers."""
        status = (await self.at.get(RESOURCECLAIM, name)).get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        return len(results), len(status.get("reservedFor") or ())

    async def until_state(self, name: str, devices: int, consumers: int) -> None:
        async def reached() -> bool:
            return await self.state(name) == (devices, consumers)

        await self.at.until(reached, f"claim {name} has not {devices} devices and {consumers} consumers")


@pytest_asyncio.fixture(loop_scope="module")
async def devices(at: Site) -> Devices:
    await at.configure(DEFAULT)
    return Devices(at)


def consumer(replicas: int, source: Manifest, *, containers: int = 1, init: bool = False, **more: Any) -> Manifest:
    """A task whose containers use a claim."""
    made = task("main", replicas, cpu="100m", pod={"resourceClaims": [{"name": "gpu", **source}]}, **more)
    spec = made["template"]["spec"]
    [container] = spec["containers"]
    container["resources"]["claims"] = [{"name": "gpu"}]
    spec["containers"] = [{**container, "name": f"c{i}"} for i in range(containers)]
    if init:
        spec["initContainers"] = [{**container, "name": "init", "command": ["true"]}]
    return made


FROM_TEMPLATE, SHARED = {"resourceClaimTemplateName": "t"}, {"resourceClaimName": "shared"}


@covers("DR-01", "DR-02")
@pytest.mark.parametrize("containers", [1, 2])
async def test_a_claim_of_its_own_for_each_pod(devices: Devices, containers: int) -> None:
    at = devices.at
    await devices.nodes({"n0": 2})
    await devices.make_class()
    await devices.template("t")
    await at.job("g", consumer(2, FROM_TEMPLATE, containers=containers))
    await at.runs("g", 2)
    names = [claim["metadata"]["name"] for claim in await devices.claims()]
    assert [await devices.state(name) for name in names] == [(1, 1), (1, 1)]
    assert len({_device(claim) for claim in await devices.claims()}) == 2


def _device(claim: Manifest) -> tuple[str, str]:
    [result] = claim["status"]["allocation"]["devices"]["results"]
    return result["pool"], result["device"]


@covers("DR-03", "DR-04", "DR-05", "DR-06", "DR-14")
@pytest.mark.parametrize(
    ("pods", "containers", "init"), [(1, 1, False), (3, 1, False), (3, 2, False), (1, 1, True), (10, 1, False)]
)
async def test_one_claim_for_all_pods(devices: Devices, pods: int, containers: int, init: bool) -> None:
    at = devices.at
    await devices.nodes({"n0": 1, "n1": 1})
    await devices.make_class()
    await devices.claim("shared")
    await at.job("g", consumer(pods, SHARED, containers=containers, init=init))
    await at.runs("g", pods)
    assert await devices.state("shared") == (1, pods)
    assert len(set(await at.nodes_of("g"))) == 1


@covers("DR-07", "DR-10")
async def test_a_claim_is_released_with_its_last_pod(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1})
    await devices.make_class()
    await devices.claim("shared")
    await at.job("long", consumer(1, SHARED))
    await at.job("short", consumer(1, SHARED, command=QUICK))
    await at.becomes("short", "Completed")
    await devices.until_state("shared", 1, 1)
    await at.delete(JOB, "long")
    await devices.until_state("shared", 0, 0)


@covers("DR-08")
async def test_a_generated_claim_is_deleted_when_its_pod_has_completed(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1})
    await devices.make_class()
    await devices.template("t")
    await at.job("g", consumer(1, FROM_TEMPLATE, command=QUICK))
    await at.becomes("g", "Completed")

    async def deleted() -> bool:
        return not await devices.claims()

    await at.until(deleted, "the generated claim is not deleted")


@covers("DR-11")
async def test_a_driver_reports_on_the_devices_of_a_claim(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1})
    await devices.make_class()
    await devices.claim("shared")
    await at.job("g", consumer(1, SHARED))
    await at.runs("g", 1)
    pool, device = _device(await at.get(RESOURCECLAIM, "shared"))
    for data in ({"link": "up"}, {"link": "down"}):
        report = {"driver": DRIVER, "pool": pool, "device": device, "data": data}
        await at.patch(RESOURCECLAIM, "shared", {"status": {"devices": [report]}}, "status")
        [found] = (await at.get(RESOURCECLAIM, "shared"))["status"]["devices"]
        assert found["data"] == data
    assert await devices.state("shared") == (1, 1)


@covers("DR-13")
async def test_ten_pods_use_one_device_in_turn(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1})
    await devices.make_class()
    await devices.template("t")
    for i in range(10):
        await at.job(f"g{i}", consumer(1, FROM_TEMPLATE, command=("sleep", "0.2")))
    for i in range(10):
        await at.becomes(f"g{i}", "Completed")


@covers("DR-15")
async def test_a_pod_waits_for_its_device_class(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1})
    await devices.claim("shared")
    await at.job("g", consumer(1, SHARED))
    await at.waits("g")
    assert await at.running("g") == 0
    await devices.make_class()
    await at.runs("g", 1)


@covers("DR-16")
async def test_a_pod_waits_until_its_class_selects_a_device(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1})
    await devices.make_class("false")
    await devices.claim("shared")
    await at.job("g", consumer(1, SHARED))
    await at.waits("g")
    assert await at.running("g") == 0
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    await at.patch(DEVICECLASS, devices.device_class, {"spec": {"selectors": selectors}})
    await at.runs("g", 1)


@covers("DR-18")
async def test_each_node_with_one_device_runs_one_pod(devices: Devices) -> None:
    at = devices.at
    names = [f"n{i}" for i in range(5)]
    await devices.nodes(dict.fromkeys(names, 1))
    await devices.make_class()
    await devices.template("t")
    await at.job("g", consumer(5, FROM_TEMPLATE))
    await at.runs("g", 5)
    assert await at.nodes_of("g") == sorted(map(at.name, names))


@covers("DR-19")
async def test_the_node_that_satisfies_the_first_alternative_is_preferred(devices: Devices) -> None:
    at = devices.at
    await devices.nodes({"n0": 1, "n1": 2})
    await devices.make_class()
    alternatives = [
        {"name": name, "deviceClassName": devices.device_class, "count": count}
        for name, count in (("preferred", 2), ("enough", 1))
    ]
    await devices.claim("shared", {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}})
    await at.job("g", consumer(1, SHARED))
    await at.runs("g", 1)
    assert await at.nodes_of("g") == [at.name("n1")]
    status = (await at.get(RESOURCECLAIM, "shared"))["status"]
    assert {row["request"] for row in status["allocation"]["devices"]["results"]} == {"gpu/preferred"}


# ---- quotas -----------------------------------------------------------------------------------------------------


async def allocated(at: Site, queue: str, expected: dict[str, str]) -> None:
    """Wait until the status of a queue has these amounts."""

    async def reached() -> bool:
        found = ((await at.get(QUEUE, queue)).get("status") or {}).get("allocated") or {}
        return {key: str(found.get(key, "0")) for key in expected} == expected

    await at.until(reached, f"the queue has not allocated {expected}")


@covers("DQ-1", "DQ-2", "DQ-4", "DQ-6")
@pytest.mark.parametrize("how", ["claim", "template"])
async def test_a_queue_holds_no_more_devices_than_its_capability(devices: Devices, how: str) -> None:
    at = devices.at
    await at.configure(QUOTA)
    await devices.nodes({"n0": 4})
    await devices.make_class()
    key = f"deviceclass/{devices.device_class}"
    queue = await at.queue("q", capability={key: "2"})
    if how == "claim":
        await devices.claim("shared", devices.request(2))
        await at.job("first", consumer(1, SHARED), queue=queue)
    else:
        await devices.template("t")
        await at.job("first", consumer(2, FROM_TEMPLATE), queue=queue)
    await at.becomes("first", "Running")
    await allocated(at, queue, {key: "2"})
    await devices.claim("third")
    await at.job("second", consumer(1, {"resourceClaimName": "third"}), queue=queue)
    await at.waits("second")
    await at.settle()
    assert await at.running("second") == 0
    await at.delete(JOB, "first")
    await at.runs("second", 1)
    await allocated(at, queue, {key: "1"})


@covers("DQ-3")
async def test_a_claim_of_two_pods_counts_once(devices: Devices) -> None:
    at = devices.at
    await at.configure(QUOTA)
    await devices.nodes({"n0": 2})
    await devices.make_class()
    key = f"deviceclass/{devices.device_class}"
    queue = await at.queue("q", capability={key: "1"})
    await devices.claim("shared")
    await at.job("g", consumer(2, SHARED), queue=queue)
    await at.runs("g", 2)
    await allocated(at, queue, {key: "1"})


@covers("DQ-5")
async def test_a_queue_limits_the_capacity_of_devices(devices: Devices) -> None:
    at = devices.at
    await at.configure(QUOTA)
    await devices.nodes({"n0": 4}, allowMultipleAllocations=True, capacity={"cores": {"value": "400"}})
    await devices.make_class()
    count, cores = f"deviceclass/{devices.device_class}", f"cores.deviceclass/{devices.device_class}"
    queue = await at.queue("q", capability={count: "4", cores: "400"})
    for name, amount in (("first", "300"), ("second", "200")):
        await devices.claim(name, devices.request(1, capacity={"requests": {"cores": amount}}))
        await at.job(name, consumer(1, {"resourceClaimName": name}), queue=queue)
        if name == "first":
            await at.runs("first", 1)
    await allocated(at, queue, {count: "1", cores: "300"})
    await at.waits("second")
    await at.settle()
    assert await at.running("second") == 0
    assert await at.nodes_of("second") == [""]
