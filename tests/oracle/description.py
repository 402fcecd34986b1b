"""A small cluster as plain data, with amounts as whole numbers, and its manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CARD = "volcano.sh/gpu-memory"
"""Memory of one card; a pod's part is on one card."""
UNITS = {"cpu": "", "memory": "Gi", "example.com/gpu": "", CARD: ""}
Amounts = dict[str, int]
Manifest = dict[str, Any]


@dataclass
class Node:
    name: str
    capacity: Amounts
    rack: str = ""
    cards: int = 0
    """Equal cards, which share the node's capacity of `CARD`."""


@dataclass
class Queue:
    name: str
    deserved: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    weight: int = 1
    parent: str = ""
    reclaimable: bool = True


@dataclass
class Pod:
    name: str
    request: Amounts
    node: str = ""
    role: str = ""
    preemptable: bool = True
    lost: int = 0
    """How often the pod was evicted."""


@dataclass
class Gang:
    name: str
    queue: str
    minimum: int
    pods: list[Pod]
    priority: int = 0
    rack_only: bool = False
    """All pods have to be in one rack."""
    role_minimums: dict[str, int] = field(default_factory=dict)
    age: int = 0
    sub_groups_in_racks: bool | None = None
    """Pods with the same role are a sub-group, and all of them are required. True: each in one rack."""
    owner: str = ""
    """The kind that owns the pods, if the controller creates the PodGroup."""

    def running(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.node]

    def pending(self) -> list[Pod]:
        return [pod for pod in self.pods if not pod.node]

    @property
    def is_whole(self) -> bool:
        return self.holds_minimum(self.running())

    def holds_minimum(self, pods: list[Pod]) -> bool:
        """Whether these pods are enough for the gang to run."""
        roles = [pod.role for pod in pods]
        return len(pods) >= self.minimum and all(roles.count(r) >= n for r, n in self.role_minimums.items())


@dataclass
class Cluster:
    nodes: list[Node]
    queues: list[Queue]
    gangs: list[Gang]
    conf: str
    proportional: bool = False
    """Queues share by weight; otherwise by what they deserve."""
    tree: bool = False

    def queue(self, name: str) -> Queue:
        return next(q for q in self.queues if q.name == name)

    def gang(self, name: str) -> Gang:
        return next(g for g in self.gangs if g.name == name)

    def free(self) -> dict[str, Amounts]:
        """The free amounts of each node."""
        found = {n.name: dict(n.capacity) for n in self.nodes}
        for gang in self.gangs:
            for pod in gang.running():
                take(found[pod.node], pod.request)
        return found

    def total(self) -> Amounts:
        return added(n.capacity for n in self.nodes)

    def held(self, queue: str) -> Amounts:
        """What the pods of a queue hold, without the queues below it."""
        return added(p.request for g in self.gangs if g.queue == queue for p in g.running())


def added(parts: Any) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def take(total: Amounts, part: Amounts) -> None:
    for name, amount in part.items():
        total[name] = total.get(name, 0) - amount


def quantities(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amount}{UNITS[name]}" for name, amount in amounts.items()}


def manifests(cluster: Cluster) -> list[Manifest]:
    """All objects but the gangs of owners, which come later."""
    return [
        *(_node(n) for n in cluster.nodes),
        *(_rack(name, cluster) for name in sorted({n.rack for n in cluster.nodes} - {""})),
        *(_queue(q) for q in cluster.queues),
        *(_group(g) for g in cluster.gangs if not g.owner),
        *(pod_manifest(g, p) for g in cluster.gangs if not g.owner for p in g.pods),
        *({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"p{n}"}, "value": n}
          for n in sorted({g.priority for g in cluster.gangs} - {0})),
    ]  # fmt: skip


def _node(node: Node) -> Manifest:
    amounts = {"pods": "110", **quantities(node.capacity)}
    if node.cards:
        amounts["volcano.sh/gpu-number"] = str(node.cards)
    labels = {"kubernetes.io/hostname": node.name, **({"rack": node.rack} if node.rack else {})}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
    }


def _rack(name: str, cluster: Cluster) -> Manifest:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": n.name}}} for n in cluster.nodes if n.rack == name]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 1, "tierName": "rack", "members": members},
    }


def _queue(queue: Queue) -> Manifest:
    spec: Manifest = {"weight": queue.weight}
    if not queue.reclaimable:
        spec["reclaimable"] = False
    if queue.deserved:
        spec["deserved"] = quantities(queue.deserved)
    if queue.capability:
        spec["capability"] = quantities(queue.capability)
    if queue.guarantee:
        spec["guarantee"] = {"resource": quantities(queue.guarantee)}
    if queue.parent:
        spec["parent"] = queue.parent
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": queue.name},
        "spec": spec,
        "status": {"state": "Open"},
    }


def _time(age: int) -> str:
    return f"2026-01-01T{10 - age // 60:02d}:{59 - age % 60:02d}:00Z"


def _group(gang: Gang) -> Manifest:
    spec: Manifest = {"minMember": gang.minimum, "queue": gang.queue}
    if gang.role_minimums:
        spec["minTaskMember"] = gang.role_minimums
    if gang.priority:
        spec["priorityClassName"] = f"p{gang.priority}"
    if gang.rack_only:
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    if gang.sub_groups_in_racks is not None:
        roles = [pod.role for pod in gang.pods]
        policy = {"name": "part", "subGroupSize": roles.count(roles[0]), "minSubGroups": len(set(roles))}
        policy["matchLabelKeys"] = ["part"]
        if gang.sub_groups_in_racks:
            policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        spec["subGroupPolicy"] = [policy]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": gang.name, "namespace": "default", "creationTimestamp": _time(gang.age)},
        "spec": spec,
        "status": {"phase": "Running" if gang.is_whole else "Pending"},
    }


def pod_manifest(gang: Gang, pod: Pod) -> Manifest:
    annotations = {"scheduling.k8s.io/group-name": gang.name}
    labels = {"part": pod.role} if gang.sub_groups_in_racks is not None else {}
    if pod.role and not labels:
        annotations["volcano.sh/task-spec"] = pod.role
    if not pod.preemptable:
        annotations["volcano.sh/preemptable"] = "false"
    amounts = quantities(pod.request)
    resources = {"requests": amounts, "limits": {name: amounts[name] for name in amounts if name == CARD}}
    spec: Manifest = {
        "schedulerName": "volcano",
        "containers": [{"name": "c", "image": "i", "resources": resources}],
    }
    if gang.priority:
        spec |= {"priority": gang.priority, "priorityClassName": f"p{gang.priority}"}
    if pod.node:
        spec["nodeName"] = pod.node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": "default",
            "uid": f"{pod.name}-{pod.lost}",
            "annotations": annotations,
            "labels": labels,
            "creationTimestamp": _time(gang.age),
        },
        "spec": spec,
        "status": {"phase": "Running" if pod.node else "Pending"},
    }
