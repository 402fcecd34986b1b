"""Which waiting pods and gangs fit, from plain objects: an exhaustive search for small clusters.

It knows nothing of the product. What it says is a lower bound: where the configuration may hold a job back for another
one (enqueue, shares by weight), only a job that is alone counts.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations

from tests.dst import devices_oracle, native_gangs, shards, storage_oracle
from tests.dst.manifests import PROFILE
from tests.dst.oracle import ENDED, Amounts, Object, active, amount, group_of, host_ports, requests, stand_in

Objects = dict[str, dict[str, Object]]


_SINGLE: Object = {"metadata": {}, "spec": {}}
"""What the PodGroup of a pod would be that a profile schedules."""


def _is_single(pod: Object) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    grouped = "scheduling.k8s.io/group-name" in annotations or native_gangs.key_of(pod)
    return pod["spec"].get("schedulerName") == PROFILE and not grouped


class State:
    """The objects of the cluster, and what is free."""

    def __init__(self, objects: Objects) -> None:
        self.pods = objects["pods"]
        plain = {group_of(pod): group for pod in self.pods.values() if (group := stand_in(pod)) is not None}
        single = {group_of(pod): _SINGLE for pod in self.pods.values() if _is_single(pod)}
        native = [native_gangs.as_group(group) for group in objects.get(native_gangs.KIND, {}).values()]
        self.groups = plain | single | objects["podgroups.scheduling.volcano.sh"]
        self.groups |= {f"{group['metadata']['namespace']}/{group['metadata']['name']}": group for group in native}
        self.queues = objects["queues.scheduling.volcano.sh"]
        self.nodes = {name: node for name, node in objects["nodes"].items() if _usable(node)}
        if objects.get(shards.KIND):
            mine = shards.own_nodes(objects[shards.KIND])
            self.nodes = {name: node for name, node in self.nodes.items() if name in mine}
        self.free: dict[str, Amounts] = {}
        self.ports: dict[str, set[int]] = {}
        for name, node in self.nodes.items():
            allocatable = (node.get("status") or {}).get("allocatable") or {}
            self.free[name] = defaultdict(Fraction, {k: amount(v) for k, v in allocatable.items()})
            self.ports[name] = set()
        bound = [pod for pod in self.pods.values() if pod["spec"].get("nodeName") and active(pod)]
        for pod in bound:
            where = pod["spec"]["nodeName"]
            if where in self.nodes:
                for resource, quantity in requests(pod).items():
                    self.free[where][resource] -= quantity
                self.ports[where] |= host_ports(pod)
        self.volumes = storage_oracle.Volumes(objects, bound)
        self.devices = devices_oracle.FreeDevices(objects)

    def members(self, group: str) -> list[Object]:
        return [pod for pod in self.pods.values() if group_of(pod) == group]

    def waiting(self, group: str) -> list[Object]:
        """Pods of a group that could be bound."""
        return [
            pod
            for pod in self.members(group)
            if not pod["spec"].get("nodeName")
            and active(pod)
            and not pod["metadata"].get("deletionTimestamp")
            and not pod["spec"].get("schedulingGates")
        ]

    def missing(self, group: str) -> int:
        """How many pods must be bound together."""
        minimum = (self.groups[group]["spec"].get("minMember")) or 1
        started = [
            pod
            for pod in self.members(group)
            if (pod["spec"].get("nodeName") and active(pod) and not pod["metadata"].get("deletionTimestamp"))
            or (pod.get("status") or {}).get("phase") == "Succeeded"
        ]
        return max(1, minimum - len(started))

    def fits(self, pods: list[Object]) -> bool:
        """Whether all of these pods fit at the same time."""
        if not pods:
            return True
        pod, rest = pods[0], pods[1:]
        wanted, ports = requests(pod), host_ports(pod)
        selector = pod["spec"].get("nodeSelector") or {}
        for name, node in self.nodes.items():
            labels = node["metadata"].get("labels") or {}
            if any(labels.get(k) != v for k, v in selector.items()) or ports & self.ports[name]:
                continue
            free = self.free[name]
            if any(quantity > free[resource] for resource, quantity in wanted.items() if quantity):
                continue
            for resource, quantity in wanted.items():
                free[resource] -= quantity
            self.ports[name] |= ports
            with self.volumes.placed(pod, name) as usable, self.devices.placed(pod, name) as allocatable:
                found = usable and allocatable and self.fits(rest)
            for resource, quantity in wanted.items():
                free[resource] += quantity
            self.ports[name] -= ports
            if found:
                return True
        return False

    def cluster_allows(self, pods: list[Object]) -> bool:
        """Whether all pods together are no more than all nodes have: no queue gets more, also when a node has shrunk
        below what runs on it."""
        total: Amounts = defaultdict(Fraction)
        for name in self.nodes:
            for resource, quantity in self.free[name].items():
                total[resource] += quantity
        for pod in self.pods.values():
            if pod["spec"].get("nodeName") not in (None, "", *self.nodes) and active(pod):
                for resource, quantity in requests(pod).items():
                    total[resource] -= quantity
        wanted: Amounts = defaultdict(Fraction)
        for pod in pods:
            for resource, quantity in requests(pod).items():
                wanted[resource] += quantity
        return all(quantity <= total[resource] for resource, quantity in wanted.items())

    def queue_allows(self, queue: str, pods: list[Object]) -> bool:
        """Whether the queue and those above it are open and have capability for these pods."""
        while queue:
            found = self.queues.get(queue)
            if found is None or (found.get("status") or {}).get("state") != "Open":
                return False
            capability = found["spec"].get("capability") or {}
            used: Amounts = defaultdict(Fraction)
            for pod in (*self._of_queue(queue), *pods):
                for resource, quantity in requests(pod).items():
                    used[resource] += quantity
            if any(used[resource] > amount(limit) for resource, limit in capability.items()):
                return False
            queue = found["spec"].get("parent") or ""
        return True

    def _of_queue(self, queue: str) -> list[Object]:
        below = {queue}
        for _ in self.queues:
            below |= {name for name, q in self.queues.items() if (q["spec"].get("parent") or "") in below}
        return [
            pod
            for pod in self.pods.values()
            if pod["spec"].get("nodeName")
            and active(pod)
            and group_of(pod) in self.groups
            and (self.groups[group_of(pod)]["spec"].get("queue") or "default") in below
        ]


def _usable(node: Object) -> bool:
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in (node.get("status") or {}).get("conditions") or ()
    )
    return ready and not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def what_fits(objects: Objects, alone: bool) -> list[str]:
    """The groups that could start now and do not. `alone`: only if no other group waits."""
    state = State(objects)
    waiting = {group: state.waiting(group) for group in state.groups}
    waiting = {group: pods for group, pods in waiting.items() if pods}
    if alone and len(waiting) > 1:
        return []
    found = []
    for group, pods in waiting.items():
        need = state.missing(group)
        queue = state.groups[group]["spec"].get("queue") or "default"
        if state.groups[group]["metadata"].get("deletionTimestamp"):
            continue
        for chosen in combinations(pods, need):
            pods_ = list(chosen)
            if state.cluster_allows(pods_) and state.queue_allows(queue, pods_) and state.fits(pods_):
                found.append(f"{need} pods of {group} ({', '.join(p['metadata']['name'] for p in chosen)})")
                break
    return found


def partial_gangs(objects: Objects) -> list[str]:
    """Groups of which some pods are bound, but fewer than the minimum, although the rest would fit."""
    state = State(objects)
    found = []
    for group in state.groups:
        members = [p for p in state.members(group) if (p.get("status") or {}).get("phase") not in ENDED]
        bound = [p for p in members if p["spec"].get("nodeName")]
        if bound and len(bound) < (state.groups[group]["spec"].get("minMember") or 1) and len(members) > len(bound):
            found.append(group)
    return found
