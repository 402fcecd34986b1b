"""What of the acceptance suite runs on the schemas of which version of Kubernetes.

A short list: a case for each kind of Kubernetes that our programs read or write. The generated page of versions reads
it (docs/kubernetes_versions.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.acceptance import test_admission, test_devices, test_lifecycle, test_pods, test_scheduling, test_volumes
from tests.acceptance.site import Manifest, Site, node
from volcano_py.api.kinds import POD

VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
"""The oldest one is the first of which the schemas have all kinds that the sandbox itself uses."""
GATES = {
    "1.36": "GenericWorkload=true",
    "1.37": "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true",
}
"""The feature gates of the API server."""
NATIVE_VERSION = {"1.36": "v1alpha2", "1.37": "v1beta1"}


class VersionCase(NamedTuple):
    name: str
    run: Callable[[Site, str], Awaitable[None]]
    """With the version."""
    since: str = VERSIONS[0]
    """The first version that has what the case needs."""

    def runs_on(self, version: str) -> bool:
        return VERSIONS.index(version) >= VERSIONS.index(self.since)


def on_nodes(name: str, test: Callable[[Site], Awaitable[None]]) -> VersionCase:
    """A test for a cluster with nodes."""

    async def run(at: Site, version: str) -> None:
        for i in range(4):
            await at.create(node(at.name(f"n{i}")))
        await test(at)

    return VersionCase(name, run)


def scheduling(name: str) -> VersionCase:
    """A row of scheduling.yaml, which has nodes of its own."""
    [row] = [row for row in test_scheduling.TABLE["cases"] if row["name"] == name]

    async def run(at: Site, version: str) -> None:
        await test_scheduling.play(test_scheduling.Case(at, row))

    return VersionCase(name, run)


def admission(kind: str, name: str) -> VersionCase:
    """A row of admission.yaml."""
    [row] = [row for row in test_admission.TABLE["cases"] if row["name"] == name and kind in row]

    async def run(at: Site, version: str) -> None:
        await test_admission.submit(at, kind, row)

    return VersionCase(name, run)


async def shared_claim(at: Site, version: str) -> None:
    await at.configure(test_devices.DEFAULT)
    await test_devices.test_a_claim_is_released_with_its_last_pod(test_devices.Devices(at))


async def native_gang(at: Site, version: str) -> None:
    """A gang that fits is bound as a whole; one that does not waits, and its condition states why."""
    for name, pods in (("fits", 2), ("waits", 5)):
        await at.create(native_group("PodGroup", name, NATIVE_VERSION[version], gang={"minCount": pods}))
        for i in range(pods):
            await at.create(member(name, i))
    await all_bound(at, "fits", 2)
    await at.settle()
    assert await bound(at, "waits") == 0


async def native_tree(at: Site, version: str) -> None:
    """Two PodGroups below a CompositePodGroup that requires both."""
    await at.create(native_group("CompositePodGroup", "root", "v1alpha3", gang={"minGroupCount": 2}))
    for name in ("a", "b"):
        await at.create(native_group("PodGroup", name, "v1beta1", parent="root", gang={"minCount": 1}))
    await at.create(member("a", 0))
    await at.settle()
    assert await bound(at, "a") == 0, "one of two groups is not enough"
    await at.create(member("b", 0))
    await all_bound(at, "a", 1)
    await all_bound(at, "b", 1)


def native_group(kind: str, name: str, version: str, *, gang: Manifest, parent: str = "") -> Manifest:
    spec: Manifest = {"schedulingPolicy": {"gang": gang}}
    if version != "v1alpha2":
        spec["workloadRef"] = {"workloadName": "w", "templateName": "t"}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return {"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def member(group: str, number: int) -> Manifest:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "2"}}}
    spec = {"schedulerName": "volcano", "terminationGracePeriodSeconds": 0, "containers": [container]}
    spec["schedulingGroup"] = {"podGroupName": group}
    metadata = {"name": f"{group}-{number}", "labels": {"group": group}}
    return {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata, "spec": spec}


async def bound(at: Site, group: str) -> int:
    pods = await at.client.list(POD, at.namespace, label_selector=f"group={group}")
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


async def all_bound(at: Site, group: str, count: int) -> None:
    async def reached() -> bool:
        return await bound(at, group) == count

    await at.until(reached, f"not {count} pods of {group} are bound")


def native(test: Callable[[Site, str], Awaitable[None]]) -> Callable[[Site, str], Awaitable[None]]:
    """A test on two nodes of four CPUs."""

    async def run(at: Site, version: str) -> None:
        for i in range(2):
            await at.create(node(at.name(f"n{i}")))
        await test(at, version)

    return run


CASES = (
    scheduling("a gang that cannot fit is reported"),
    scheduling("pods apart"),
    scheduling("an important job takes half"),
    scheduling("reclaim inside a hierarchy"),
    admission("job", "queue default"),
    admission("job", "negative replicas"),
    on_nodes("a plain pod gets a podgroup", test_lifecycle.test_a_plain_pod_gets_a_podgroup),
    on_nodes("pods of a users podgroup", test_lifecycle.test_pods_of_a_users_podgroup),
    on_nodes("svc, ssh and env together", test_lifecycle.test_svc_ssh_and_env_together),
    on_nodes("retries end and the failed pod stays", test_lifecycle.test_retries_end_and_the_failed_pod_stays),
    on_nodes("a gated Job runs without its gates", test_pods.test_a_gated_job_runs_when_its_gates_are_removed),
    on_nodes("a volume of its first consumer", test_volumes.test_a_volume_is_provisioned_for_its_first_consumer),
    VersionCase("a ResourceClaim of two Jobs", shared_claim, "1.34"),
    VersionCase("a native gang", native(native_gang), "1.36"),
    VersionCase("a tree of native groups", native(native_tree), "1.37"),
)
