"""The estimated usage of pods that no measurement includes yet. Volcano: usage/estimator.go, usage/shadow_cache.go."""

from __future__ import annotations

from typing import NamedTuple


def composite(measured: float, shadow: float, capacity: float) -> float:
    """The used part of a capacity, from 0 to 1: `measured`, in percent of the capacity, plus the estimate `shadow`."""
    if capacity <= 0:
        return 0.0
    return min(1.0, max(0.0, (measured / 100 * capacity + shadow) / capacity))


def weighted(cpu: float, memory: float, cpu_weight: float, memory_weight: float) -> float:
    """The weighted mean of two parts; 0 without weights."""
    weights = cpu_weight + memory_weight
    return (cpu * cpu_weight + memory * memory_weight) / weights if weights else 0.0


def risk(load: float, threshold: float, factor: float) -> float:
    """The factor by which estimates grow on a node with this load."""
    return max(1.0, factor) if load >= threshold else 1.0


def estimate(request: float, limit: float, request_ratio: float, burst_ratio: float, risk_factor: float) -> float:
    """The estimated usage of a container; without a limit above the request, at most the request."""
    most = max(limit, request)
    expected = request * request_ratio + (most - request) * burst_ratio
    return min(most, max(0.0, expected * risk_factor))


def estimate_best_effort(amount: float, risk_factor: float) -> float:
    """The estimated usage of a pod that requests nothing."""
    return max(0.0, amount * risk_factor)


class Estimate(NamedTuple):
    """The estimated usage of one pod on a node: milli-cpu and bytes."""

    node: int
    cpu: float
    memory: float


class ShadowLoad:
    """The sum of the estimates on each node, and the pods they belong to."""

    def __init__(self) -> None:
        self.cpu: dict[int, float] = {}
        self.memory: dict[int, float] = {}
        self.of: dict[str, Estimate] = {}

    def add(self, pod: str, new: Estimate) -> None:
        """Count a pod; replaces an older estimate of it."""
        self.remove(pod)
        self.of[pod] = new
        self.cpu[new.node] = self.cpu.get(new.node, 0.0) + new.cpu
        self.memory[new.node] = self.memory.get(new.node, 0.0) + new.memory

    def remove(self, pod: str) -> None:
        """Subtract exactly what `add` has counted for the pod."""
        old = self.of.pop(pod, None)
        if old is not None:
            self.cpu[old.node] = max(0.0, self.cpu[old.node] - old.cpu)
            self.memory[old.node] = max(0.0, self.memory[old.node] - old.memory)
