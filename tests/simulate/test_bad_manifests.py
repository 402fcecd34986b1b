"""A manifest that is wrong in one place is rejected or corrected; everything else is decided as before."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
Path = tuple[str | int, ...]
JUNK: tuple[Any, ...] = (None, "x", -3, 1e300, [], {}, [None], {"x": None}, True)

NODE: Manifest = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "odd", "labels": {"zone": "a"}, "annotations": {"volcano.sh/oversubscription": "true"}},
    "spec": {"unschedulable": False, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "5"},
        "images": [{"names": ["image"], "sizeBytes": 100}],
    },
}
POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "odd",
        "namespace": "default",
        "labels": {"app": "odd"},
        "annotations": {"volcano.sh/task-spec": "worker", "volcano.sh/task-priority": "3"},
        "ownerReferences": [{"uid": "u", "kind": "Job", "name": "j", "apiVersion": "batch/v1", "controller": True}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "priorityClassName": "odd",
        "nodeSelector": {"zone": "a"},
        "hostNetwork": True,
        "containers": [
            {
                "name": "a",
                "image": "image",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            }
        ],
        "initContainers": [{"name": "b", "restartPolicy": "Always"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "overhead": {"cpu": "1m"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "schedulingGates": [{"name": "g"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
                }
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "odd"}}}
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "topologyKey": "zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "odd"}},
            }
        ],
    },
    "status": {
        "phase": "Pending",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    },
}
POD_GROUP: Manifest = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "odd", "namespace": "default", "annotations": {"sla-waiting-time": "1h"}},
    "spec": {
        "minMember": 1,
        "queue": "default",
        "minResources": {"cpu": "1"},
        "minTaskMember": {"worker": 1},
        "priorityClassName": "odd",
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        "subGroupPolicy": [
            {"name": "s", "subGroupSize": 1, "matchLabelKeys": ["app"], "networkTopology": {"highestTierAllowed": 1}}
        ],
    },
    "status": {"phase": "Inqueue"},
}
QUEUE: Manifest = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "odd"},
    "spec": {
        "weight": 1,
        "parent": "root",
        "reclaimable": True,
        "capability": {"cpu": "4"},
        "deserved": {"cpu": "2"},
        "guarantee": {"resource": {"cpu": "1"}},
        "affinity": {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}},
    },
    "status": {"state": "Open"},
}
JOB: Manifest = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "odd", "namespace": "default", "annotations": {"volcano.sh/preemptable": "true"}},
    "spec": {
        "queue": "default",
        "minAvailable": 1,
        "priorityClassName": "odd",
        "plugins": {"env": [], "svc": ["--disable-network-policy=true"]},
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "volumes": [{"mountPath": "/data", "volumeClaimName": "claim"}],
        "networkTopology": {"mode": "soft", "highestTierAllowed": 1},
        "tasks": [
            {
                "name": "worker",
                "replicas": 2,
                "minAvailable": 1,
                "dependsOn": {"name": [], "iteration": "any"},
                "template": {
                    "metadata": {"labels": {"app": "odd"}, "annotations": {"a": "b"}},
                    "spec": {
                        "priorityClassName": "odd",
                        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
                    },
                },
            }
        ],
    },
    "status": {"state": {"phase": "Pending"}},
}
OTHERS: list[Manifest] = [
    JOB,
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "odd"},
        "value": 5,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "odd"}}},
        "status": {"disruptionsAllowed": 0},
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "100"}},
        "status": {"hard": {"requests.cpu": "100"}, "used": {"requests.cpu": "0"}},
    },
    {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "odd"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "good"}}}]},
    },
]
GOOD: list[Manifest] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "good"},
        "status": {"allocatable": {"cpu": "9", "memory": "9Gi", "pods": "9"}},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "good", "namespace": "other"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
    },
]
CONF = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: sla}, {name: pdb}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder},
    {name: binpack}, {name: network-topology-aware}, {name: nodegroup, arguments: {strict: false}},
    {name: resourcequota}]
"""


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a manifest below its kind."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if key not in ("apiVersion", "kind"):
            yield (*path, key)
            yield from places(each, (*path, key))


def with_junk(manifest: Manifest, path: Path, junk: Any) -> Manifest:
    changed = deepcopy(manifest)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = junk
    return changed


@pytest.mark.parametrize("manifest", [NODE, POD, POD_GROUP, QUEUE, *OTHERS], ids=lambda m: str(m["kind"]))
@pytest.mark.parametrize("raw", [False, True], ids=["completed", "raw"])
def test_one_junk_value_in_each_field_leaves_the_others_alone(manifest: Manifest, raw: bool) -> None:
    for n, path in enumerate(places(manifest)):
        check_junk(manifest, path, JUNK[n % len(JUNK)], raw)


@pytest.mark.slow
@pytest.mark.parametrize("manifest", [NODE, POD, POD_GROUP, QUEUE, *OTHERS], ids=lambda m: str(m["kind"]))
@pytest.mark.parametrize("raw", [False, True], ids=["completed", "raw"])
def test_every_junk_value_in_each_field_leaves_the_others_alone(manifest: Manifest, raw: bool) -> None:
    for path in places(manifest):
        for junk in JUNK:
            check_junk(manifest, path, junk, raw)


def check_junk(manifest: Manifest, path: Path, junk: Any, raw: bool) -> None:
    """Run two cycles with `junk` at `path` of one object: no fault, and the good pod is bound."""
    conf = load(CONF, REGISTRY.actions)
    others = [m for m in (NODE, POD, POD_GROUP, QUEUE, *OTHERS) if m is not manifest]
    if raw:
        others += [{"kind": "Queue", "metadata": {"name": "default"}, "spec": {}, "status": {"state": "Open"}}]
    simulation = Simulation([with_junk(manifest, path, junk), *others, *GOOD], raw=raw)
    found = [simulation.cycle(conf) for _ in range(2)]
    assert not any(r.faults for r in found), (path, junk, [r.faults for r in found])
    if not raw:  # bare pods get their group only in a completed cluster
        assert "other/good" in found[0].bound, (path, junk, simulation.rejected)
