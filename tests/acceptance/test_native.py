"""Groups of Kubernetes (scheduling.k8s.io) in the session, on an API server that serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from tests.acceptance import site as sites
from tests.acceptance import test_devices
from tests.acceptance.site import MARKS, Manifest, Site, node
from tests.acceptance.versions import GATES, all_bound, member, native, native_gang, native_group, native_tree
from volcano_py.api.kinds import EVENT, RESOURCECLAIM
from volcano_py.kube.errors import NotFound
from volcano_py.sandbox.cluster import Sandbox

pytestmark = MARKS
NEWEST = "1.37"
VERSIONS = {"v1beta1": "1.37", "v1alpha2": "1.36"}
"""Kubernetes by the version of the groups, the preferred one first."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sandbox | None]:
    """A sandbox with the gates; None where CLUSTER names a cluster with hollow nodes."""
    if sites.HOLLOW:
        yield None
        return
    if sites.KUBECONFIG:
        pytest.skip("it needs a cluster without nodes of its own")
    gates = f"{GATES[NEWEST]},DRAWorkloadResourceClaims=true,WorkloadWithJob=true"
    options: Any = {"kubernetes_version": NEWEST, "feature_gates": gates}
    async with sites.cluster(tmp_path_factory.mktemp("cluster"), nodes=0, **options) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(loop_scope="module")
async def version(at: Site) -> str:
    """The version of Kubernetes, by the groups that it serves."""
    try:
        found = orjson.loads(await at.client.raw("GET", "/apis/scheduling.k8s.io"))["versions"]
    except NotFound:
        found = []
    served = {row["version"] for row in found}
    for name, of in VERSIONS.items():
        if name in served:
            return of
    pytest.skip("the API server serves no groups of scheduling.k8s.io: it needs --runtime-config and their gate")


async def test_a_gang(at: Site, version: str) -> None:
    await native(native_gang)(at, version)


async def test_a_tree(at: Site, version: str) -> None:
    if version == "1.36":
        pytest.skip("1.36 has no groups of groups")
    await native(native_tree)(at, version)


async def condition(at: Site, name: str) -> Manifest:
    """The condition of a PodGroup that states whether it is scheduled; empty before."""
    group = orjson.loads(
        await at.client.raw("GET", f"/apis/scheduling.k8s.io/v1beta1/namespaces/{at.namespace}/podgroups/{name}")
    )
    rows = (group.get("status") or {}).get("conditions") or []
    return next((dict(row) for row in rows if row["type"] == "PodGroupInitiallyScheduled"), {})


async def test_the_condition_and_an_event_state_why_a_gang_waits(at: Site, version: str) -> None:
    """And a smaller minimum lets it start."""
    if version == "1.36":
        pytest.skip("minCount is immutable in 1.36")
    await at.create(node(at.name("n0")))
    group = native_group("PodGroup", "g", "v1beta1", gang={"minCount": 3})
    await at.create(group)
    for i in range(3):
        await at.create(member("g", i))

    async def waits() -> bool:
        found = await condition(at, "g")
        return (found.get("status"), found.get("reason")) == ("False", "Unschedulable")

    await at.until(waits, "the condition does not state that the gang waits")
    assert "2 of the 3 pods that the gang needs fit" in (await condition(at, "g"))["message"]
    events = await at.client.list(EVENT, at.namespace)
    assert any(e["reason"] == "Unschedulable" and e["involvedObject"]["kind"] == "PodGroup" for e in events)
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{at.namespace}/podgroups/g"
    body = orjson.dumps({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    await at.client.raw("PATCH", path, body=body, content_type="application/merge-patch+json")
    await all_bound(at, "g", 2)

    async def scheduled() -> bool:
        return (await condition(at, "g")).get("status") == "True"

    await at.until(scheduled, "the condition is not True")


async def test_the_pods_of_a_group_share_a_claim(at: Site, version: str) -> None:
    """It is reserved once, for the group."""
    if version == "1.36":
        pytest.skip("its groups are of another version")
    devices = test_devices.Devices(at)
    await devices.nodes({"n0": 1})
    await devices.make_class()
    head = {"apiVersion": RESOURCECLAIM.api_version, "kind": RESOURCECLAIM.kind, "metadata": {"name": "shared"}}
    await at.create({**head, "spec": devices.request()})
    claim = {"name": "dev", "resourceClaimName": "shared"}
    group = native_group("PodGroup", "g", "v1beta1", gang={"minCount": 2})
    group["spec"]["resourceClaims"] = [claim]
    await at.create(group)
    for i in range(2):
        pod = member("g", i)
        pod["spec"]["resourceClaims"] = [claim]
        await at.create(pod)
    await all_bound(at, "g", 2)
    [reserved] = (await at.get(RESOURCECLAIM, "shared"))["status"]["reservedFor"]
    assert (reserved["resource"], reserved["name"]) == ("podgroups", "g")
