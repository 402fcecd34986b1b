"""kube-scheduler's view of the nodes in a session: the pods on every node.

Volcano: NodeMap. Only the predicates plugin's event handlers change it after the session was opened. The lists of
nodes with pods that have (anti-)affinity are built at the opening and never again.
"""

from __future__ import annotations

from tests.reference.cluster import Cluster
from tests.reference.kube.ports import HostPort, host_ports
from tests.reference.kube.selectors import Labels, Pod
from tests.reference.node import Node


class NodeMap:
    def __init__(self, nodes: dict[str, Node], cluster: Cluster) -> None:
        self.nodes = nodes
        self.pods: dict[str, list[Pod]] = {}
        for name, node in nodes.items():
            self.pods[name] = [t.pod for t in node.tasks.values()]
        self.have_affinity = [n for n in nodes if any(map(has_affinity, self.pods[n]))]
        self.have_required_anti_affinity = [n for n in nodes if any(map(required_anti_affinity, self.pods[n]))]
        self.namespaces: dict[str, Labels] = {
            m["metadata"]["name"]: m["metadata"].get("labels") or {} for m in cluster.of("Namespace")
        }
        self.services = cluster.of("Service")
        self.owners = [*cluster.of("ReplicaSet"), *cluster.of("StatefulSet"), *cluster.of("ReplicationController")]
        self.ports: dict[str, set[HostPort]] = {}
        """A set: of two pods with the same port, the first one that ends frees it."""
        for name, pods in self.pods.items():
            self.ports[name] = {port for pod in pods for port in host_ports(pod)}

    def add(self, node: str, pod: Pod) -> None:
        self.pods[node].append(pod)
        self.ports[node].update(host_ports(pod))

    def remove(self, node: str, pod: Pod) -> None:
        """Remove one occurrence: a plugin that is listed twice adds it twice."""
        uid = pod["metadata"]["uid"]
        pods = self.pods[node]
        there = next((i for i, p in enumerate(pods) if p["metadata"]["uid"] == uid), None)
        if there is not None:
            self.pods[node] = pods[:there] + pods[there + 1 :]
        self.ports[node].difference_update(host_ports(pod))


def has_affinity(pod: Pod) -> bool:
    affinity = pod["spec"].get("affinity") or {}
    return affinity.get("podAffinity") is not None or affinity.get("podAntiAffinity") is not None


def required_anti_affinity(pod: Pod) -> list[dict]:
    anti = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return anti.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def required_affinity(pod: Pod) -> list[dict]:
    affinity = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def preferred(pod: Pod, kind: str) -> list[dict]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
