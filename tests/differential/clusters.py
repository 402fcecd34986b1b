"""Random small clusters with one pending pod that has many constraints. A seed and a number give the same one again."""

from __future__ import annotations

from random import Random
from typing import Any

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.quantity import milli_value, value
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

Manifest = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CARD = "example.com/card"
IMAGES = {"small:1": 30 << 20, "large:1": 700 << 20, "huge:1": 3 << 30}


def cluster(seed: int, number: int) -> list[Manifest]:
    """Nodes, running pods, and the pending pod `p`."""
    rng = Random(f"{seed} {number}")
    nodes = [_node(rng, i) for i in range(rng.randint(2, 7))]
    running: list[Manifest] = []
    for i in range(rng.randint(0, 8)):
        node = rng.choice(nodes)
        made = _pod(rng, f"r{i}", node["metadata"]["name"])
        if _has_capacity(node, [*running, made]):
            running.append(made)
    return [*nodes, *running, _pod(rng, "p", "")]


def _has_capacity(node: Manifest, pods: list[Manifest]) -> bool:
    """Whether the pods of a node fit it. A session rejects all pods on a node that exceeds its capacity, as Volcano
    does; a profile only those that request what is exceeded."""
    here = [PodInfo(from_manifest(Pod, p)) for p in pods if p["spec"]["nodeName"] == node["metadata"]["name"]]
    amounts = node["status"]["allocatable"]
    most = {name: milli_value(text) if name == "cpu" else value(text) for name, text in amounts.items()}
    used = {name: sum(pod.requests.get(name, 0) for pod in here) for pod in here for name in pod.requests}
    return len(here) <= most["pods"] and all(amount <= most.get(name, 0) for name, amount in used.items())


def _node(rng: Random, i: int) -> Manifest:
    labels = {HOST: f"n{i}"}
    for key, values in ((ZONE, ("a", "b")), ("disk", ("ssd", "hdd")), ("size", ("1", "5", "10"))):
        if rng.random() < 0.75:
            labels[key] = rng.choice(values)
    amounts = {
        "cpu": rng.choice(("2", "4", "8", "2500m")),
        "memory": rng.choice(("2Gi", "4Gi", "8Gi")),
        "ephemeral-storage": "10Gi",
        "pods": rng.choice(("2", "3", "110", "110")),
    }
    if rng.random() < 0.6:
        amounts[CARD] = rng.choice(("1", "4"))
    spec: Manifest = {}
    taints = [
        {"key": key, "value": rng.choice(("x", "y")), "effect": effect}
        for key in ("a", "b")
        for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if rng.random() < 0.1
    ]
    if taints:
        spec["taints"] = taints
    if rng.random() < 0.08:
        spec["unschedulable"] = True
    images = [
        {"names": [name], "sizeBytes": size + (i << 20)} for name, size in sorted(IMAGES.items()) if rng.random() < 0.5
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{i}", "labels": labels},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "images": images,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(rng: Random, name: str, node: str) -> Manifest:
    labels = {"app": rng.choice(("web", "db"))} if rng.random() < 0.8 else {}
    containers = [_container(rng, i) for i in range(rng.choice((1, 1, 2)))]
    spec: Manifest = {"schedulerName": "volcano", "containers": containers}
    if rng.random() < 0.2:
        spec["initContainers"] = [_container(rng, 9)]
    if rng.random() < 0.15:
        spec["overhead"] = {"cpu": "100m", "memory": "64Mi"}
    if rng.random() < 0.4:
        spec["tolerations"] = [_toleration(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.12:
        spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    affinity = {
        kind: found
        for kind, found in (
            ("nodeAffinity", _node_affinity(rng)),
            ("podAffinity", _pod_affinity(rng)),
            ("podAntiAffinity", _pod_affinity(rng)),
        )
        if found and rng.random() < 0.25
    }
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [_spread(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.15:
        spec["volumes"] = [{"name": "data", "image": {"reference": rng.choice(sorted(IMAGES))}}]
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def _container(rng: Random, i: int) -> Manifest:
    requests: Manifest = {}
    if rng.random() < 0.8:
        requests["cpu"] = rng.choice(("100m", "500m", "1", "2"))
    if rng.random() < 0.6:
        requests["memory"] = rng.choice(("64Mi", "1Gi"))
    if rng.random() < 0.1:
        requests[CARD] = "1"
    found: Manifest = {"name": f"c{i}", "image": rng.choice(sorted(IMAGES)), "resources": {"requests": requests}}
    if CARD in requests:
        found["resources"]["limits"] = {CARD: "1"}
    if rng.random() < 0.35:
        port: Manifest = {"containerPort": 80, "hostPort": rng.choice((80, 81))}
        if rng.random() < 0.4:
            port["hostIP"] = rng.choice(("127.0.0.1", "0.0.0.0"))
        if rng.random() < 0.3:
            port["protocol"] = "UDP"
        found["ports"] = [port]
    return found


def _toleration(rng: Random) -> Manifest:
    found: Manifest = {"operator": rng.choice(("Exists", "Equal"))}
    if found["operator"] == "Equal" or rng.random() < 0.7:
        found["key"] = rng.choice(("a", "b"))
    if found["operator"] == "Equal":
        found["value"] = rng.choice(("x", "y"))
    if rng.random() < 0.5:
        found["effect"] = rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
    return found


def _expression(rng: Random) -> Manifest:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": "size", "operator": operator, "values": [rng.choice(("2", "6"))]}
    found: Manifest = {"key": rng.choice(("disk", ZONE)), "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = rng.sample(("ssd", "hdd", "a", "b"), 2)
    return found


def _term(rng: Random) -> Manifest:
    if rng.random() < 0.15:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{rng.randint(0, 3)}"]}]}
    return {"matchExpressions": [_expression(rng) for _ in range(rng.choice((1, 1, 2)))]}


def _node_affinity(rng: Random) -> Manifest:
    found: Manifest = {}
    if rng.random() < 0.5:
        terms = [_term(rng) for _ in range(rng.choice((1, 2)))]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.7:
        preferred = [{"weight": rng.choice((1, 30, 100)), "preference": _term(rng)} for _ in range(rng.choice((1, 2)))]
        found["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return found


def _pod_term(rng: Random) -> Manifest:
    found: Manifest = {"topologyKey": rng.choice((ZONE, HOST)), "labelSelector": _selector(rng)}
    if rng.random() < 0.15:
        found["namespaces"] = [rng.choice(("default", "other"))]
    return found


def _pod_affinity(rng: Random) -> Manifest:
    found: Manifest = {}
    if rng.random() < 0.5:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = [_pod_term(rng)]
    if rng.random() < 0.6:
        preferred = [{"weight": rng.choice((1, 50)), "podAffinityTerm": _pod_term(rng)}]
        found["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return found


def _selector(rng: Random) -> Manifest:
    if rng.random() < 0.3:
        return {"matchExpressions": [{"key": "app", "operator": rng.choice(("Exists", "DoesNotExist"))}]}
    return {"matchLabels": {"app": rng.choice(("web", "db"))}}


def _spread(rng: Random) -> Manifest:
    found: Manifest = {
        "maxSkew": rng.choice((1, 1, 2)),
        "topologyKey": rng.choice((ZONE, HOST)),
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selector(rng),
    }
    if rng.random() < 0.2:
        found["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.2:
        found["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if found["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.2:
        found["minDomains"] = rng.choice((1, 2, 3))
    return found
