"""The objects that the simulated users create: small, valid, and drawn from the seed of their step."""

from __future__ import annotations

from random import Random
from typing import Any

Manifest = dict[str, Any]

GPU = "example.com/gpu"
PROFILE = "single"
"""The schedulerName of the profile, in the runs that have one."""
ZONES = ("a", "b")


def _configuration(actions: str, first: tuple[str, ...], second: tuple[str, ...]) -> str:
    """The text of a configuration with two tiers. Limits of queues hold in trees."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in (first, second):
        lines.append("- plugins:")
        for plugin in tier:
            lines.append(f"  - name: {plugin}")
            lines += ["    enableHierarchy: true"] if plugin == "capacity" else []
    return "\n".join(lines) + "\n"


_FIRST = ("priority", "gang", "conformance")
_SECOND = ("capacity", "predicates", "nodeorder")
CONFIGURATIONS = {
    "allocate": _configuration("allocate, backfill", _FIRST, (*_SECOND, "network-topology-aware")),
    "enqueue": _configuration(
        "enqueue, allocate, backfill",
        _FIRST,
        ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
    ),
    "preempt": _configuration("allocate, preempt, backfill", (*_FIRST, "pdb"), _SECOND),
    "reclaim": _configuration("allocate, reclaim, preempt, backfill", _FIRST, _SECOND),
}
"""Configurations of the scheduler by name."""


def node(name: str, random: Random) -> Manifest:
    capacity = {"cpu": str(random.choice((3, 4, 6, 8))), "memory": "32Gi", "pods": str(random.choice((4, 20, 110)))}
    if random.random() < 0.4:
        capacity[GPU] = str(random.choice((1, 2, 4)))
    labels = {"kubernetes.io/hostname": name, "zone": random.choice(ZONES)}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def spec(random: Random, largest: int = 3) -> Manifest:
    """The spec of a pod."""
    requests = {"cpu": str(random.randint(1, largest)), "memory": random.choice(("64Mi", "1Gi", "4Gi"))}
    if random.random() < 0.2:
        requests[GPU] = "1"
    limits = {GPU: "1"} if GPU in requests else {}
    container: Manifest = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": limits}}
    if random.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    made: Manifest = {"schedulerName": "volcano", "containers": [container]}
    if random.random() < 0.15:
        made["nodeSelector"] = {"zone": random.choice(ZONES)}
    if random.random() < 0.3:
        made["priorityClassName"] = random.choice(("low", "high"))
    made["terminationGracePeriodSeconds"] = random.choice((0, 1, 5))
    return made


def pod(name: str, pod_spec: Manifest, group: str = "") -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "default", "labels": {"app": name.rpartition("-")[0] or name}}
    if group:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec}


def pod_group(name: str, minimum: int, queue: str, priority: str = "") -> Manifest:
    wanted: Manifest = {"minMember": minimum, "queue": queue}
    if priority:
        wanted["priorityClassName"] = priority
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": wanted,
    }


def job(name: str, random: Random, queue: str) -> Manifest:
    replicas = random.randint(1, 3)
    template = {"spec": {**spec(random, 2), "restartPolicy": "Never"}}
    task = {"name": "work", "replicas": replicas, "template": template}
    wanted: Manifest = {"schedulerName": "volcano", "queue": queue, "minAvailable": random.randint(1, replicas)}
    wanted["tasks"] = [task]
    if random.random() < 0.4:
        wanted["policies"] = [{"event": random.choice(("PodEvicted", "PodFailed")), "action": "RestartJob"}]
    if random.random() < 0.2:
        wanted["ttlSecondsAfterFinished"] = 5
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": wanted,
    }


def queue(name: str, random: Random, parent: str) -> Manifest:
    wanted: Manifest = {"weight": random.randint(1, 3), "reclaimable": random.random() < 0.7}
    if random.random() < 0.6:
        wanted["capability"] = {"cpu": str(random.choice((random.randint(1, 4), random.randint(2, 10))))}
    if random.random() < 0.4:
        wanted["deserved"] = {"cpu": "1"}
    if parent:
        wanted["parent"] = parent
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": wanted}


def hyper_node(name: str, random: Random, large: bool = False) -> Manifest:
    """A HyperNode whose member is a pattern of node names; a large one is valid, and costs much."""
    pattern = f"(n|x){random.randint(0, 5)}" + (
        f"|(ab{random.randint(0, 9)}c){{{random.randint(400, 900)}}}" if large else ""
    )
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 1, "members": [member]},
    }


def budget(name: str, app: str, minimum: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": app}}},
    }


def configmap(name: str, namespace: str, key: str, configuration: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: CONFIGURATIONS[configuration]},
    }
