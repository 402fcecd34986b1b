"""NodeInfo: a node and the pods on it, with their sums. Kubernetes: scheduling framework, NodeInfo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from volcano_py.api import quantity
from volcano_py.api.core import Node, ResourceList
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class NodeInfo:
    """Amounts: cpu in thousandths, everything else in whole units."""

    def __init__(self, node: Node) -> None:
        self.pods: dict[str, PodInfo] = {}
        self.with_ports: dict[str, PodInfo] = {}
        """The pods with host ports."""
        self.with_affinity: dict[str, PodInfo] = {}
        """The pods with affinity terms between pods."""
        self.with_volumes: dict[str, PodInfo] = {}
        """The pods that use PersistentVolumeClaims."""
        self.in_groups: dict[str, PodInfo] = {}
        """The pods that name a PodGroup of scheduling.k8s.io."""
        self.requested: dict[str, int] = {}
        self.non_zero_cpu = 0
        self.non_zero_memory = 0
        self.update(node)

    def update(self, node: Node) -> None:
        self.node = node
        self.name = node.metadata.name
        self.labels: Mapping[str, str] = node.metadata.labels or {}
        self.allocatable = amounts(node.status.allocatable)

    def add(self, pod: PodInfo) -> None:
        self.pods[pod.key] = pod
        if pod.ports:
            self.with_ports[pod.key] = pod
        if pod.has_terms:
            self.with_affinity[pod.key] = pod
        if pod.volume_claims:
            self.with_volumes[pod.key] = pod
        if pod.group:
            self.in_groups[pod.key] = pod
        self._count(pod, 1)

    def arrange(self, keys: Iterable[str]) -> None:
        """Have the pods in this order; others follow."""
        pods = {key: self.pods[key] for key in keys if key in self.pods} | self.pods
        for pod in pods.values():
            self.remove(pod)
            self.add(pod)

    def remove(self, pod: PodInfo) -> None:
        removed = self.pods.pop(pod.key, None)
        if removed is not None:
            self.with_ports.pop(pod.key, None)
            self.with_affinity.pop(pod.key, None)
            self.with_volumes.pop(pod.key, None)
            self.in_groups.pop(pod.key, None)
            self._count(removed, -1)

    def clone(self) -> NodeInfo:
        """A copy whose pods can be changed; the node and the pods themselves are shared."""
        other = object.__new__(NodeInfo)
        other.__dict__.update(self.__dict__)
        other.pods, other.requested = dict(self.pods), dict(self.requested)
        other.with_ports, other.with_affinity = dict(self.with_ports), dict(self.with_affinity)
        other.with_volumes, other.in_groups = dict(self.with_volumes), dict(self.in_groups)
        return other

    def _count(self, pod: PodInfo, sign: int) -> None:
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        self.non_zero_cpu += sign * pod.non_zero[0]
        self.non_zero_memory += sign * pod.non_zero[1]


def amounts(resources: ResourceList | None) -> dict[str, int]:
    """A node's amounts."""
    return {
        name: quantity.milli_value(amount) if name == CPU else quantity.value(amount)
        for name, amount in (resources or {}).items()
    }


__all__ = ["CPU", "MEMORY", "NodeInfo", "amounts"]
