"""How full a node would be. kube-scheduler: LeastAllocated, MostAllocated, BalancedAllocation.

All arithmetic is on whole numbers held in float64 (exact below 64 TiB of memory), divided and rounded down as
kube-scheduler does.
"""

from __future__ import annotations

import math

import numpy as np

from volcano_py.scheduler.framework.node_rules import Columns, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.node_table import at
from volcano_py.scheduler.model.resource import CPU, MEMORY, NVIDIA_GPU
from volcano_py.scheduler.model.task import Task


class _Requested:
    """Least and most allocated: cpu and memory by non-zero requests, equal weights."""

    scope = Scope.LOCAL
    batch = True
    name = ""

    def __init__(self, session: Session, weight: int) -> None:
        self._numbers = session.numbers
        self._weight = weight
        self._complete = bool((session.numbers.allocatable[:2] > 0).all())
        """Every node has cpu and memory, as nodes do."""

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        return None

    def over(self, task: Task, candidates: Columns) -> Floats:
        return self.rate(task, candidates)

    def rate(self, task: Task, nodes: Columns) -> Floats:
        n, cls = self._numbers, task.spec_class
        capacity, memory = at(n.allocatable[0], nodes), at(n.allocatable[1], nodes)
        cpu_wanted = at(n.kube_cpu, nodes) + cls.nonzero_cpu
        memory_wanted = at(n.kube_memory, nodes) + cls.nonzero_memory
        if self._complete:
            both = self._score(capacity, cpu_wanted) + self._score(memory, memory_wanted)
            return np.floor(both * 0.5) * self._weight
        has_cpu, has_memory = capacity > 0, memory > 0
        both = np.where(has_cpu, self._score(np.where(has_cpu, capacity, 1.0), cpu_wanted), 0.0)
        both += np.where(has_memory, self._score(np.where(has_memory, memory, 1.0), memory_wanted), 0.0)
        weights = has_cpu.astype(np.float64) + has_memory
        return np.floor(both / np.maximum(weights, 1.0)) * self._weight

    def _score(self, capacity: Floats, requested: Floats) -> Floats:
        raise NotImplementedError

    def rate_one(self, task: Task, node: int) -> float:
        n, cls = self._numbers, task.spec_class
        total = weights = 0
        for row, requested in (
            (0, int(n.kube_cpu.item(node)) + cls.nonzero_cpu),
            (1, int(n.kube_memory.item(node)) + cls.nonzero_memory),
        ):
            capacity = int(n.allocatable.item(row, node))
            if capacity > 0:
                weights += 1
                total += self._score_one(capacity, requested)
        return float(self._weight * (total // weights)) if weights else 0.0

    def _score_one(self, capacity: int, requested: int) -> int:
        raise NotImplementedError


class LeastAllocated(_Requested):
    """The emptier the better: 100·free // capacity."""

    name = "LeastAllocated"

    def _score(self, capacity: Floats, requested: Floats) -> Floats:
        return np.floor(np.maximum(capacity - requested, 0.0) * 100 / capacity)

    def _score_one(self, capacity: int, requested: int) -> int:
        return (capacity - requested) * 100 // capacity if requested <= capacity else 0


class MostAllocated(_Requested):
    """The fuller the better: 100·requested // capacity."""

    name = "MostAllocated"

    def _score(self, capacity: Floats, requested: Floats) -> Floats:
        return np.floor(np.minimum(requested, capacity) * 100 / capacity)

    def _score_one(self, capacity: int, requested: int) -> int:
        return min(requested, capacity) * 100 // capacity


class BalancedAllocation:
    """The more evenly cpu, memory and GPUs would be used the better: 100·(1 − deviation of the used
    parts)."""

    name = "BalancedAllocation"
    scope = Scope.LOCAL
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._numbers = session.numbers
        self._table = session.table
        self._weight = weight
        self._complete = bool((session.numbers.allocatable[:2] > 0).all())

    def applies(self, task: Task) -> bool:
        return any(task.request[d] > 0 for d in (CPU, MEMORY, NVIDIA_GPU))

    def constant(self, task: Task) -> float | None:
        return None

    def over(self, task: Task, candidates: Columns) -> Floats:
        return self.rate(task, candidates)

    def _dimensions(self, task: Task) -> list[tuple[int, float]]:
        """(row, request); GPUs count only for pods that ask for some."""
        wanted = [(0, task.request.milli_cpu), (1, task.request.memory)]
        gpus = task.request[NVIDIA_GPU]
        if gpus > 0:
            wanted.append((self._table.rows[NVIDIA_GPU], gpus))
        return wanted

    def rate(self, task: Task, nodes: Columns) -> Floats:
        n = self._numbers
        dimensions = self._dimensions(task)
        if self._complete and len(dimensions) == 2:
            cpu = (at(n.kube_requested[0], nodes) + dimensions[0][1]) / at(n.allocatable[0], nodes)
            memory = (at(n.kube_requested[1], nodes) + dimensions[1][1]) / at(n.allocatable[1], nodes)
            apart = np.abs(np.minimum(cpu, 1.0) - np.minimum(memory, 1.0)) / 2
            even: Floats = np.floor((1 - apart) * 100) * self._weight
            return even
        parts = []
        for row, request in dimensions:
            capacity = n.allocatable[row, nodes]
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.minimum((n.kube_requested[row, nodes] + request) / capacity, 1.0)
            parts.append(np.where(capacity > 0, part, np.nan))
        if len(parts) == 2:
            deviation = np.abs(parts[0] - parts[1]) / 2
            deviation = np.nan_to_num(deviation, nan=0.0)
        else:
            deviation = _deviation(np.stack(parts))
        found: Floats = self._weight * np.floor((1 - deviation) * 100)
        return found

    def rate_one(self, task: Task, node: int) -> float:
        n = self._numbers
        parts = []
        for row, request in self._dimensions(task):
            capacity = n.allocatable.item(row, node)
            if capacity > 0:
                parts.append(min((n.kube_requested.item(row, node) + request) / capacity, 1.0))
        if len(parts) == 2:
            deviation = abs(parts[0] - parts[1]) / 2
        elif len(parts) > 2:
            mean = sum(parts) / len(parts)
            deviation = math.sqrt(sum((p - mean) * (p - mean) for p in parts) / len(parts))
        else:
            deviation = 0.0
        return float(self._weight * math.floor((1 - deviation) * 100))


def _deviation(parts: Floats) -> Floats:
    """Population standard deviation over the dimensions a node has, summed in their order."""
    has = ~np.isnan(parts)
    count = has.sum(axis=0)
    values = np.where(has, parts, 0.0)
    total = values[0] + values[1] + values[2]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        squares = np.where(has, (values - mean) * (values - mean), 0.0)
        many = np.sqrt((squares[0] + squares[1] + squares[2]) / count)
    first_two = np.array([_pair(column) for column in parts.T]) if (count == 2).any() else many
    found: Floats = np.where(count > 2, many, np.where(count == 2, first_two, 0.0))
    return found


def _pair(column: Floats) -> float:
    present = column[~np.isnan(column)]
    return float(abs(present[0] - present[1]) / 2) if len(present) == 2 else 0.0
