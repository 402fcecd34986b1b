"""Scores by the used part of a node. kube-scheduler: LeastAllocated, MostAllocated, BalancedAllocation.

All arithmetic is on whole numbers held in float64 (exact below 64 TiB of memory), divided and rounded down as
kube-scheduler does.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.formulas import Formula, Term
from volcano_py.scheduler.framework.node_rules import LOCAL, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource_names import CPU, MEMORY, NVIDIA_GPU
from volcano_py.scheduler.model.some_nodes import FilledNodes, Numbers, SomeNodes
from volcano_py.scheduler.model.task import Task

_SCALAR_LIMIT = 4
"""Up to this number, changed columns are computed one by one."""


class _Requested:
    """Least and most allocated: cpu and memory by non-zero requests, equal weights."""

    scope: Literal[Scope.LOCAL] = LOCAL
    batch = True
    name = ""
    in_runs = True
    _formula = Formula.LEAST_ALLOCATED

    def __init__(self, session: Session, weight: int) -> None:
        self._numbers = session.numbers
        self._weight = weight
        self._complete = bool((session.numbers.kube_capacity > 0).all())
        """Whether every node has cpu and memory."""

    def applies(self, task: Task) -> bool:
        return True

    def score(self, task: Task, numbers: Numbers) -> Floats:
        capacity = numbers.kube_capacity
        requested = numbers.kube_nonzero + task.spec_class.nonzero[:, None]
        if self._complete:
            both: Floats = self._scores(capacity, requested)
            found: Floats = np.floor((both[0] + both[1]) * 0.5)
            return found if self._weight == 1 else found * self._weight
        has = capacity > 0
        both = np.where(has, self._scores(np.where(has, capacity, 1.0), requested), 0.0)
        weights = np.maximum(has.sum(axis=0), 1)
        mean: Floats = np.floor((both[0] + both[1]) / weights)
        return mean * self._weight

    def _scores(self, capacity: Floats, requested: Floats) -> Floats:
        raise NotImplementedError

    def score_node(self, task: Task, node: int) -> float:
        n, nonzero = self._numbers, task.spec_class.nonzero
        total = weights = 0
        for row in (0, 1):
            capacity = int(n.kube_capacity.item(row, node))
            if capacity > 0:
                weights += 1
                total += self._score(capacity, int(n.kube_nonzero.item(row, node) + nonzero.item(row)))
        return float(self._weight * (total // weights)) if weights else 0.0

    def _score(self, capacity: int, requested: int) -> int:
        raise NotImplementedError

    def term(self, task: Task) -> Term:
        return Term(self._formula, (float(self._weight), *task.spec_class.nonzero.tolist()))


class LeastAllocated(_Requested):
    """Prefer nodes with more free capacity: 100·free // capacity."""

    name = "LeastAllocated"

    def _scores(self, capacity: Floats, requested: Floats) -> Floats:
        return np.floor(np.maximum(capacity - requested, 0.0) * 100 / capacity)

    def _score(self, capacity: int, requested: int) -> int:
        return (capacity - requested) * 100 // capacity if requested <= capacity else 0


class MostAllocated(_Requested):
    """Prefer nodes with less free capacity: 100·requested // capacity."""

    name = "MostAllocated"
    _formula = Formula.MOST_ALLOCATED

    def _scores(self, capacity: Floats, requested: Floats) -> Floats:
        return np.floor(np.minimum(requested, capacity) * 100 / capacity)

    def _score(self, capacity: int, requested: int) -> int:
        return min(requested, capacity) * 100 // capacity


class BalancedAllocation:
    """Prefer nodes whose resources the pod makes more evenly used: 50 + (50 + with − without) // 2 (Kubernetes 1.36).

    `with` and `without` the pod are 100·(1 − standard deviation of the used parts of cpu, memory and GPUs). A pod that
    changes nothing scores 75, one that makes the node more even up to 100, one that makes it less even down to 50.
    """

    name = "BalancedAllocation"
    in_runs = True
    scope: Literal[Scope.LOCAL] = LOCAL
    batch = True

    def __init__(self, session: Session, weight: int) -> None:
        self._numbers = session.numbers
        self._table = session.table
        self._weight = weight
        self._complete = bool((session.numbers.kube_capacity > 0).all())
        self._now: Floats = np.empty(0)
        """How evenly cpu and memory of each node are used without the pod, up to a position in the log of changes."""
        self._position = -1

    def applies(self, task: Task) -> bool:
        return any(task.request[d] > 0 for d in (CPU, MEMORY, NVIDIA_GPU))

    def _dimensions(self, task: Task) -> list[tuple[int, float]]:
        """(row, request); GPUs count only for pods that request some."""
        requested = [(0, task.request.milli_cpu), (1, task.request.memory)]
        gpus = task.request[NVIDIA_GPU]
        if gpus > 0:
            requested.append((self._table.rows[NVIDIA_GPU], gpus))
        return requested

    def score(self, task: Task, numbers: Numbers) -> Floats:
        dimensions = self._dimensions(task)
        if self._complete and len(dimensions) == 2:
            request = task.spec_class.vector(self._table)[:2, None]
            score = even(numbers.kube_requested[:2] + request, numbers.kube_capacity)
            score -= self._without(numbers)
            score *= 0.5
            score += 75.0
            np.floor(score, out=score)
            return score if self._weight == 1 else score * self._weight
        rows = [row for row, _ in dimensions]
        capacities = [numbers.kube_capacity[row] if row < 2 else numbers.allocatable[row] for row in rows]
        used = [numbers.kube_requested[row] for row in rows]
        requests = [request for _, request in dimensions]
        columns = zip(np.array(capacities).T.tolist(), np.array(used).T.tolist(), strict=True)
        return np.array([self._weight * _balance(c, u, requests) for c, u in columns], dtype=np.float64)

    def _without(self, numbers: Numbers) -> Floats:
        """The part of the score that is the same for all pods; only changed columns are computed again."""
        if isinstance(numbers, FilledNodes):
            return even(numbers.kube_requested[:2].copy(), numbers.kube_capacity)
        n = self._numbers
        if self._position < 0:
            self._now = even(n.kube_requested[:2].copy(), n.kube_capacity)
        elif self._position != n.log.position:
            changed = n.log.since(self._position)
            if len(changed) > _SCALAR_LIMIT:
                self._now[changed] = even(n.kube_requested[:2, changed], n.kube_capacity[:, changed])
            else:
                for node in changed:
                    self._now[node] = _evenness(n.kube_capacity[:, node].tolist(), n.kube_requested[:2, node].tolist())
        self._position = n.log.position
        return self._now[numbers.nodes] if isinstance(numbers, SomeNodes) else self._now

    def score_node(self, task: Task, node: int) -> float:
        n, dimensions = self._numbers, self._dimensions(task)
        capacities = [(n.kube_capacity if row < 2 else n.allocatable).item(row, node) for row, _ in dimensions]
        used = [n.kube_requested.item(row, node) for row, _ in dimensions]
        return float(self._weight * _balance(capacities, used, [request for _, request in dimensions]))

    def term(self, task: Task) -> Term | None:
        if task.request[NVIDIA_GPU] > 0:
            return None
        return Term(Formula.BALANCED, (float(self._weight), task.request.milli_cpu, task.request.memory))


def even(used: Floats, capacity: Floats) -> Floats:
    """How evenly two resources are used, 0 to 100, by node. `used` is overwritten: it must be a copy."""
    used /= capacity
    np.minimum(used, 1.0, out=used)
    even: Floats = used[0] - used[1]
    np.abs(even, out=even)
    even *= 0.5
    np.subtract(1.0, even, out=even)
    even *= 100.0
    return np.floor(even, out=even)


def _balance(capacities: list[float], used: list[float], requests: list[float]) -> int:
    """By resource: the capacity of the node, what is already requested on it, and the request of the pod."""
    without = _evenness(capacities, used)
    return 50 + (50 + _evenness(capacities, [u + r for u, r in zip(used, requests, strict=True)]) - without) // 2


def _evenness(capacities: list[float], used: list[float]) -> int:
    parts = [min(u / c, 1.0) for c, u in zip(capacities, used, strict=True) if c > 0]
    if len(parts) == 2:
        deviation = abs(parts[0] - parts[1]) / 2
    elif len(parts) > 2:
        mean = sum(parts) / len(parts)
        deviation = math.sqrt(sum((p - mean) * (p - mean) for p in parts) / len(parts))
    else:
        deviation = 0.0
    return math.floor((1 - deviation) * 100)
