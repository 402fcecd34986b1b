"""Cluster: the objects that a profile's plugins look at. Kubernetes: the scheduler's cache, snapshot and nominator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from volcano_py.api.core import Node, PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


class Cluster:
    """Nodes with their pods (bound or assumed), and the other objects that rules read."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """Namespace to its labels."""
        self.services: dict[str, Service] = {}
        self.workloads: dict[tuple[str, str], ReplicaSet | ReplicationController | StatefulSet] = {}
        """(kind, namespace/name) to an owner of pods."""
        self.budgets: dict[str, PodDisruptionBudget] = {}
        self.groups: dict[str, PodGroup] = {}
        self.members: dict[str, dict[str, PodInfo]] = {}
        """Pod group (which need not exist) to the pods that name it."""
        self._nominated: dict[str, tuple[str, PodInfo]] = {}
        self._stray: dict[str, dict[str, PodInfo]] = {}
        """Pods on nodes that do not exist, or not any more."""

    def set_node(self, node: Node) -> None:
        """Add or update a node."""
        info = self.nodes.get(node.metadata.name)
        if info is not None:
            info.update(node)
            return
        info = self.nodes[node.metadata.name] = NodeInfo(node)
        for pod in self._stray.pop(info.name, {}).values():
            info.add(pod)

    def delete_node(self, name: str) -> None:
        info = self.nodes.pop(name, None)
        if info is not None and info.pods:
            self._stray[name] = info.pods

    def place(self, pod: PodInfo, node: str) -> None:
        """Count a pod on a node; `unplace` undoes it."""
        info = self.nodes.get(node)
        if info is not None:
            info.remove(pod)
            info.add(pod)
        else:
            self._stray.setdefault(node, {})[pod.key] = pod

    def unplace(self, pod: PodInfo, node: str) -> None:
        info = self.nodes.get(node)
        if info is not None:
            info.remove(pod)
        else:
            self._stray.get(node, {}).pop(pod.key, None)

    def join(self, pod: PodInfo) -> None:
        """Count a pod as a member of its group, if it names one."""
        if pod.group:
            self.members.setdefault(pod.group, {})[pod.key] = pod

    def leave(self, pod: PodInfo) -> None:
        if pod.group:
            self.members.get(pod.group, {}).pop(pod.key, None)

    def placed(self, group: str) -> int:
        """How many members of a group are bound or assumed."""
        members = self.members.get(group, {})
        return sum(key in info.pods for info in self.nodes.values() for key in members)

    def in_order(self) -> list[NodeInfo]:
        """All nodes, one of each zone in turn."""
        zones: dict[tuple[str, str], list[NodeInfo]] = {}
        for info in self.nodes.values():
            zones.setdefault((info.labels.get(REGION, ""), info.labels.get(ZONE, "")), []).append(info)
        rows = max((len(z) for z in zones.values()), default=0)
        return [z[i] for i in range(rows) for z in zones.values() if i < len(z)]

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Count the pod where others of lower or equal priority look for a place; an empty node takes it back."""
        self._nominated.pop(pod.key, None)
        if node:
            self._nominated[pod.key] = (node, pod)

    def nominated(self, node: str) -> Iterator[PodInfo]:
        """The pods that are nominated to a node."""
        for where, pod in self._nominated.values():
            if where == node:
                yield pod

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """A namespace's labels; none if there is no such object."""
        return self.namespaces.get(namespace, {})
