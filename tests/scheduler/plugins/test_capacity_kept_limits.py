"""The limits of a tree of queues are kept between sessions, and are always those that a new scheduler computes."""

from __future__ import annotations

from random import Random
from typing import Any

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.plugins.capacity.kept_limits import KeptLimits
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.manifests import as_struct

CONFIGURATION = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    enableHierarchy: true
"""
NAMES = ("a", "b", "a1", "a2", "b1", "b2", "b3")


def amounts(random: Random) -> dict[str, str]:
    found = {"cpu": str(random.randrange(1, 9)), "memory": f"{random.randrange(1, 17)}Gi"}
    if random.random() < 0.3:
        found["nvidia.com/gpu"] = str(random.randrange(3))
    return {name: amount for name, amount in found.items() if random.random() < 0.8}


def queue(random: Random, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"weight": 1, "parent": "root" if len(name) == 1 else name[0]}
    for field in ("capability", "deserved"):
        if random.random() < 0.6:
            spec[field] = amounts(random)
    if random.random() < 0.4:
        spec["guarantee"] = {"resource": amounts(random)}
    return {"kind": "Queue", "metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}


def node(random: Random, name: str) -> dict[str, Any]:
    amount = {"cpu": str(random.choice((4, 8))), "memory": "16Gi", "pods": "110"}
    if random.random() < 0.3:
        amount["nvidia.com/gpu"] = "2"
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amount, "capacity": amount}}


def pod(random: Random, number: int) -> list[dict[str, Any]]:
    name, requests = f"p{number}", {"cpu": "1", "memory": "1Gi"}
    group = {
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"minMember": 1, "queue": random.choice(NAMES[2:]), "minResources": requests},
    }
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{number}",
        "annotations": {"scheduling.k8s.io/group-name": name},
    }
    container = {"name": "main", "image": "busybox", "resources": {"requests": requests}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    return [group, {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}]


def test_kept_limits_are_those_of_a_new_scheduler() -> None:
    configuration = load(CONFIGURATION, REGISTRY.actions)
    kept_sessions = 0
    for seed in range(6):
        random = Random(seed)
        model = Cluster()
        objects: dict[tuple[str, str], dict[str, Any]] = {}

        def put(manifest: dict[str, Any], model: Cluster = model, objects: Any = objects) -> None:
            objects[manifest["kind"], manifest["metadata"]["name"]] = manifest
            model.upsert(manifest["kind"], as_struct({"apiVersion": VERSIONS[manifest["kind"]], **manifest}))

        root = {"kind": "Queue", "metadata": {"name": "root"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
        for manifest in (root, *(queue(random, name) for name in NAMES), node(random, "n0")):
            put(manifest)
        for step in range(12):
            change = random.randrange(5)
            if change == 0:
                put(queue(random, random.choice(NAMES)))
            elif change == 1:
                name = random.choice(NAMES)  # the status alone, as after a write of the scheduler
                old = objects["Queue", name]
                put({**old, "status": {"state": "Open", "allocated": {"cpu": str(step)}}})
            elif change == 2:
                put(node(random, f"n{random.randrange(3)}"))
            else:
                for manifest in pod(random, step):
                    put(manifest)
            source = model.keep(KeptLimits).source
            report = run_once(model, configuration, 1000.0 + step, assume=False)
            kept_sessions += model.keep(KeptLimits).source is source and source is not None
            fresh = Cluster()
            for manifest in objects.values():
                fresh.upsert(manifest["kind"], as_struct({"apiVersion": VERSIONS[manifest["kind"]], **manifest}))
            expected = run_once(fresh, configuration, 1000.0 + step, assume=False)
            assert report.session.gauges == expected.session.gauges, (seed, step)
            assert report.bound == expected.bound
    assert 20 < kept_sessions < 60, "both ways are taken"


VERSIONS = {
    "Queue": "scheduling.volcano.sh/v1beta1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "Node": "v1",
    "Pod": "v1",
}
