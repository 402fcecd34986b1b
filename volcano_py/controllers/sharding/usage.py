"""The requested part of each node, updated pod by pod."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.api import quantity
from volcano_py.api.core import Node, Pod
from volcano_py.api.quantity import Quantity

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of mirror pods, which represent static pods of a kubelet."""
_OVER = ("Succeeded", "Failed")


class Rates(NamedTuple):
    """Requested parts of a node's capacity, 0 to 1."""

    cpu: float
    memory: float


class Usage:
    """The requests of the pods on each node: those of their containers, without init containers and overhead."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, int, int]] = {}
        self._sums: dict[str, list[int]] = {}

    def seen(self, pod: Pod) -> str:
        """Store a pod; returns the node that it counts for, or counted for."""
        before = self.gone(pod)
        node = pod.spec.node_name
        if not node or pod.status.phase in _OVER or MIRROR in (pod.metadata.annotations or {}):
            return before
        cpu, memory = _requests(pod, "cpu"), _requests(pod, "memory")
        self._pods[pod.metadata.uid or pod.key] = (node, cpu, memory)
        sums = self._sums.setdefault(node, [0, 0])
        sums[0] += cpu
        sums[1] += memory
        return node

    def gone(self, pod: Pod) -> str:
        """A pod was deleted; returns the node that it counted for."""
        node, cpu, memory = self._pods.pop(pod.metadata.uid or pod.key, ("", 0, 0))
        if node:
            sums = self._sums[node]
            sums[0] -= cpu
            sums[1] -= memory
        return node

    def rates(self, node: Node) -> Rates:
        capacity = node.status.capacity or {}
        cpu, memory = self._sums.get(node.metadata.name, (0, 0))
        return Rates(_rate(cpu, capacity.get("cpu")), _rate(memory, capacity.get("memory")))


def _requests(pod: Pod, resource: str) -> int:
    """In thousandths: whole numbers, so that subtraction is exact."""
    amounts = ((one.resources.requests or {}).get(resource) for one in pod.spec.containers or ())
    return sum(quantity.milli_value(amount) for amount in amounts if amount is not None)


def _rate(requested: int, capacity: Quantity | None) -> float:
    whole = quantity.milli_value(capacity) if capacity is not None else 0
    return min(1.0, requested / whole) if whole > 0 else 0.0
