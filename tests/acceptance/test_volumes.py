"""Local and provisioned volumes: pods run where their volumes are, and volumes are made where pods can run.

The pods write and read their volumes where the nodes run their commands; the sandbox's nodes only run them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.covers import covers
from tests.acceptance.site import MARKS, Manifest, Site, task
from volcano_py.api.kinds import (
    JOB,
    NODE,
    PERSISTENTVOLUME,
    PERSISTENTVOLUMECLAIM,
    POD,
    STATEFULSET,
    STORAGECLASS,
)

pytestmark = MARKS
HOSTNAME = "kubernetes.io/hostname"
LOCAL, PROVISIONED = "kubernetes.io/no-provisioner", "rancher.io/local-path"
WRITE_AND_READ = ("sh", "-c", "date >> /data/dates && cat /data/dates && sleep 600")


async def hosts(at: Site) -> list[str]:
    """The host names of nodes that accept pods."""
    nodes = [n for n in await at.client.list(NODE) if not (n.get("spec") or {}).get("taints")]
    return [str(node["metadata"]["labels"][HOSTNAME]) for node in nodes]


async def storage_class(at: Site, provisioner: str = LOCAL) -> str:
    """A class whose claims wait for their first consumer; its name."""
    name = at.name("class")
    head = {"apiVersion": STORAGECLASS.api_version, "kind": "StorageClass", "metadata": {"name": name}}
    await at.create({**head, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
    return name


async def disk(at: Site, name: str, of_class: str, host: str) -> str:
    """A volume on a node; its name."""
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [host]}]}
    spec = {
        "storageClassName": of_class,
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": "/tmp"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    head = {"apiVersion": PERSISTENTVOLUME.api_version, "kind": "PersistentVolume"}
    await at.create({**head, "metadata": {"name": at.name(name)}, "spec": spec})
    return at.name(name)


def claim_spec(of_class: str, volume: str = "") -> Manifest:
    spec = {"storageClassName": of_class, "accessModes": ["ReadWriteOnce"]}
    spec |= {"volumeName": volume} if volume else {}
    return {**spec, "resources": {"requests": {"storage": "1Gi"}}}


async def claim(at: Site, name: str, of_class: str, volume: str = "") -> None:
    head = {"apiVersion": PERSISTENTVOLUMECLAIM.api_version, "kind": "PersistentVolumeClaim"}
    await at.create({**head, "metadata": {"name": name}, "spec": claim_spec(of_class, volume)})


def consumer(replicas: int, of_claim: str, **pod: Any) -> Manifest:
    """A task whose pods use a claim."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": of_claim}}]
    made = task("main", replicas, cpu="100m", command=WRITE_AND_READ, pod={"volumes": volumes, **pod})
    made["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return made


@covers("SB-V01", "SB-V02", "SB-V04")
async def test_pods_run_on_the_node_of_their_volume_one_after_the_other(at: Site) -> None:
    host = (await hosts(at))[-1]
    of_class = await storage_class(at)
    await claim(at, "data", of_class, await disk(at, "disk", of_class, host))
    for name in ("first", "second"):
        await at.job(name, consumer(1, "data"))
        await at.runs(name, 1)
        assert await at.nodes_of(name) == [host]
        await at.delete(JOB, name)
        await at.until(lambda: _gone(at), "the pods are not deleted")
    found = await at.get(PERSISTENTVOLUMECLAIM, "data")
    assert (found["status"]["phase"], found["spec"]["volumeName"]) == ("Bound", at.name("disk"))


async def _gone(at: Site) -> bool:
    return not list(await at.client.list(POD, at.namespace))


@covers("SB-V03")
async def test_two_pods_use_one_volume_at_once(at: Site) -> None:
    host = (await hosts(at))[0]
    of_class = await storage_class(at)
    await disk(at, "disk", of_class, host)
    await claim(at, "data", of_class)
    await at.job("two", consumer(2, "data"))
    await at.runs("two", 2)
    assert await at.nodes_of("two") == [host, host]


def elsewhere(host: str) -> Manifest:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [host]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


@covers("SB-V07", "SB-V08")
@pytest.mark.parametrize("how", ["affinity", "selector"])
async def test_a_pod_that_must_be_elsewhere_waits(at: Site, how: str) -> None:
    host, other, *_ = await hosts(at)
    of_class = await storage_class(at)
    await claim(at, "data", of_class, await disk(at, "disk", of_class, host))
    pod = elsewhere(other) if how == "affinity" else {"nodeSelector": {HOSTNAME: other}}
    await at.job("g", consumer(1, "data", **pod))
    await at.waits("g")
    await at.settle()
    assert await at.nodes_of("g") == [""]


@covers("SB-V09", "SB-V10", "SB-V11", "SB-V12")
@pytest.mark.parametrize("management", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("where", ["podAntiAffinity", "podAffinity"])
async def test_volumes_of_a_stateful_set_follow_the_affinity_of_its_pods(at: Site, where: str, management: str) -> None:
    of_class = await storage_class(at)
    three = (await hosts(at))[:3]
    for host in three:
        for i in range(3):
            await disk(at, f"{host}-{i}", of_class, host)
    labels = {"app": "set"}
    rule = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    spec = {
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 0,
        "affinity": {where: {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}},
        "containers": consumer(3, "data")["template"]["spec"]["containers"],
    }
    await at.create(
        {
            "apiVersion": STATEFULSET.api_version,
            "kind": "StatefulSet",
            "metadata": {"name": "set"},
            "spec": {
                "replicas": 3,
                "podManagementPolicy": management,
                "serviceName": "set",
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec(of_class)}],
            },
        }
    )

    async def placed() -> dict[str, str]:
        pods = await at.client.list(POD, at.namespace, label_selector="app=set")
        return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if p["status"]["phase"] == "Running"}

    async def three_run() -> bool:
        return len(await placed()) == 3

    await at.until(three_run, "the pods of the StatefulSet do not run")
    nodes = await placed()
    assert len(set(nodes.values())) == (3 if where == "podAntiAffinity" else 1)
    for name, host in nodes.items():
        volume = (await at.get(PERSISTENTVOLUMECLAIM, f"data-{name}"))["spec"]["volumeName"]
        assert volume in {at.name(f"{host}-{i}") for i in range(3)}


@covers("SB-V13")
async def test_a_volume_is_provisioned_for_its_first_consumer(at: Site) -> None:
    await claim(at, "data", await storage_class(at, PROVISIONED))
    await at.job("g", consumer(1, "data"))
    await at.runs("g", 1)
    found = await at.get(PERSISTENTVOLUMECLAIM, "data")
    assert found["status"]["phase"] == "Bound"
    [host] = await at.nodes_of("g")
    assert found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == host
