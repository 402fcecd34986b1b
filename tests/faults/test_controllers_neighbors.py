"""A Job touches only what it controls, whatever else has the names that it derives.

Objects under all of those names, of no owner or of others, are there before the Job; it runs with every plugin, is
restarted, ends and is deleted. They stay byte for byte as they were.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.controllers.small_api import SmallApi
from tests.controllers.world import World, command, job, queue, task
from volcano_py.api import kinds
from volcano_py.api.kinds import ResourceType

Manifest = dict[str, Any]

PLUGINS: dict[str, list[str]] = {
    "env": [],
    "svc": [],
    "ssh": ["--ssh-private-key=private", "--ssh-public-key=public"],
    "tensorflow": ["--worker=worker"],
    "mpi": ["--master=head", "--worker=worker"],
    "pytorch": ["--master=head", "--worker=worker"],
    "ray": [],
    "hcclrank": [],
}
OF_PLUGINS = {
    (kinds.CONFIGMAP, "prod-svc"),
    (kinds.SERVICE, "prod"),
    (kinds.NETWORKPOLICY, "prod"),
    (kinds.SECRET, "prod-ssh"),
    (kinds.SERVICE, "prod-head-svc"),
}
OTHERS = {(kinds.POD, "prod-worker-1"), (kinds.PODGROUP, "prod"), (kinds.PERSISTENTVOLUMECLAIM, "data")}
CONTENT: dict[ResourceType, Manifest] = {
    kinds.CONFIGMAP: {"data": {"worker.host": "mine"}},
    kinds.SECRET: {"data": {"config": "bWluZQ==", "id_rsa": "bWluZQ=="}},
    kinds.SERVICE: {"spec": {"selector": {"app": "mine"}}},
    kinds.NETWORKPOLICY: {"spec": {"podSelector": {}}},
    kinds.POD: {"spec": {"containers": []}, "status": {"phase": "Running"}},
    kinds.PODGROUP: {"spec": {"minMember": 7}, "status": {"phase": "Running"}},
    kinds.PERSISTENTVOLUMECLAIM: {"spec": {}},
}
OWNERS: dict[str, list[Manifest]] = {
    "nothing": [],
    "another Job": [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "else", "uid": "other"}],
    "another kind": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "prod", "uid": "other"}],
    "a Job of another group": [{"apiVersion": "batch/v1", "kind": "Job", "name": "prod", "uid": "other"}],
}


def neighbor(rt: ResourceType, name: str, owner: str) -> Manifest:
    references = [{**one, "controller": True} for one in OWNERS[owner]]
    metadata: Manifest = {"name": name, "namespace": "lab", "labels": {"volcano.sh/job-name": "prod"}}
    if references:
        metadata["ownerReferences"] = references
    return copy.deepcopy({"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata, **CONTENT[rt]})


def prod() -> Manifest:
    tasks = (task("head", 1), task("worker", 2, minAvailable=1))
    for one in tasks:
        one["template"] = {"spec": {"containers": [{"name": one["name"], "image": "busybox:1"}]}}
    volumes = [{"mountPath": "/data", "volumeClaimName": "data"}]
    return job(*tasks, name="prod", plugins=PLUGINS, volumes=volumes, maxRetry=9)


@asynccontextmanager
async def world_of(*manifests: Manifest) -> AsyncIterator[World]:
    api = await SmallApi().start()
    for manifest in (queue("root"), queue("default"), *manifests):
        api.put(manifest)
    world = World(api)
    await world.start()
    try:
        yield world
    finally:
        await world.kill()
        await api.stop()


def controlled(world: World) -> set[tuple[str, str]]:
    """Plural and name of all objects that the Job controls."""
    uid = world.job("prod")["metadata"]["uid"]
    return {
        (key[0], key[2])
        for key, obj in world.api.objects.items()
        if any(one["uid"] == uid for one in obj["metadata"].get("ownerReferences") or ())
    }


def run_own_pods(world: World, phase: str) -> None:
    for plural, name in controlled(world):
        if plural == "pods" and world.pods()[name]["status"]["phase"] in ("Pending", "Running"):
            containers = [{"name": "main", "ready": True, "state": {}}]
            status = {"phase": phase, "containerStatuses": containers}
            world.api.change(kinds.POD, name, {"spec": {"nodeName": "n1"}, "status": status})


def admit_own(world: World) -> None:
    for plural, name in controlled(world):
        if plural == "podgroups" and world.api.get(kinds.PODGROUP, name).get("status", {}).get("phase") != "Inqueue":
            world.api.change(kinds.PODGROUP, name, {"status": {"phase": "Inqueue"}})


async def live(world: World, wanted: set[tuple[str, str]]) -> None:
    """Play scheduler and kubelet until the Job runs and controls what is wanted."""

    def running() -> bool:
        world.reap()
        admit_own(world)
        run_own_pods(world, "Running")
        return world.phase("prod") == "Running" and wanted <= controlled(world)

    await world.until(running)


@pytest.mark.parametrize("seed", range(12))
async def test_objects_that_a_job_does_not_own_stay_byte_identical(seed: int) -> None:
    draw = random.Random(seed)
    names = sorted(OF_PLUGINS | OTHERS, key=str)
    taken = names if seed == 0 else [one for one in names if draw.random() < 0.6]
    taken = [*{*taken, (kinds.PERSISTENTVOLUMECLAIM, "data")}]  # the Job names this one itself
    manifests = [neighbor(rt, name, draw.choice(list(OWNERS))) for rt, name in sorted(taken, key=str)]
    async with world_of(*manifests) as world:
        before = {key: json.dumps(obj) for key, obj in world.api.objects.items() if key[0] != "queues"}
        assert len(before) == len(manifests)
        world.api.put(prod())
        await world.until(lambda: world.job("prod")["metadata"].get("uid"))
        free = {(rt.plural, name) for rt, name in OF_PLUGINS if (rt, name) not in taken}
        await live(world, free | {("pods", "prod-head-0"), ("pods", "prod-worker-0")})
        old = world.pods()["prod-head-0"]["metadata"]["uid"]
        world.api.put(command("RestartJob", kinds.JOB, "prod"))
        await world.reaped(lambda: old not in {pod["metadata"]["uid"] for pod in world.pods().values()})
        await live(world, free | {("pods", "prod-head-0"), ("pods", "prod-worker-0")})
        world.api.put(command("TerminateJob", kinds.JOB, "prod"))
        await world.reaped(lambda: world.phase("prod") == "Terminated" and not controlled(world))
        reported = world.events("PluginError")
        for rt, name in OF_PLUGINS:
            expected = 1 if (rt, name) in taken else 0
            assert sum(f"{rt.kind} {name} exists" in message for message in reported) == expected, (
                rt.kind,
                name,
                reported,
            )
        assert all("rename the Job or delete the" in message for message in reported)
        if (kinds.POD, "prod-worker-1") in taken:
            assert any("Pod prod-worker-1 exists" in message for message in world.events("FailedCreate"))
        world.api.delete(kinds.JOB, "prod")
        await world.quiet()
        after = {key: json.dumps(world.api.objects.get(key)) for key in before}
        assert after == before


async def test_a_podgroup_of_the_jobs_own_name_that_it_does_not_control_stays_and_is_reported() -> None:
    """A PodGroup is named after the Job's UID; here the server's next UID can be foreseen."""
    async with world_of() as world:
        name = f"prod-uid-{world.api.revision + 2}"
        stored = json.dumps(world.api.put(neighbor(kinds.PODGROUP, name, "nothing")))
        assert world.api.put(prod() | {"spec": prod()["spec"] | {"volumes": []}})["metadata"]["uid"] == name[5:]
        message = (await world.until(lambda: world.events("PodGroupError")))[0]
        assert f"PodGroup {name} exists and this Job does not control it" in message
        world.api.put(command("AbortJob", kinds.JOB, "prod"))
        await world.until(lambda: world.phase("prod") == "Aborted")
        assert json.dumps(world.api.get(kinds.PODGROUP, name)) == stored and not world.pods()
        world.api.put(command("ResumeJob", kinds.JOB, "prod"))
        await world.until(lambda: world.phase("prod") != "Aborted")
        world.api.delete(kinds.PODGROUP, name)
        await live(world, {("podgroups", name)})


async def test_a_podgroup_that_has_the_name_of_a_replicasets_stays() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web-uid", "controller": True}
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "lab", "ownerReferences": [owner]},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "main"}]},
    }
    web: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "lab"},
        "spec": {"replicas": 0, "selector": {}},
    }
    async with world_of() as world:
        uid = f"uid-{world.api.revision + 2}"
        owner["uid"] = uid
        stored = json.dumps(world.api.put(neighbor(kinds.PODGROUP, f"podgroup-{uid}", "another kind")))
        assert world.api.put(web)["metadata"]["uid"] == uid
        world.api.put(pod)
        await world.until(lambda: world.pods()["web-0"]["metadata"].get("annotations"))
        world.api.change(kinds.REPLICASET, "web", {"spec": {"replicas": 2}})
        await asyncio.sleep(0.1)
        world.api.change(kinds.REPLICASET, "web", {"spec": {"replicas": 0}})
        await world.quiet()
        assert json.dumps(world.api.get(kinds.PODGROUP, f"podgroup-{uid}")) == stored
