"""Scores by the used part of a node, for sessions. kube-scheduler: LeastAllocated, MostAllocated,
BalancedAllocation."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from volcano_py.scheduler.framework.kernels.formulas import Formula, FormulaTerm
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import FilledNodes, Numbers, SomeNodes
from volcano_py.scheduler.model.resource_names import CPU, MEMORY, NVIDIA_GPU
from volcano_py.scheduler.rules.allocation import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    ResourceScore,
    balance,
    balances,
    evenness,
    evennesses,
    mean,
    mean_of_two,
    means,
)

_SCALAR_LIMIT = 4
"""Up to this number, changed columns are computed one by one."""


class LeastAllocated:
    """Prefer nodes with more free capacity: cpu and memory by non-zero requests, with equal weights."""

    name = "LeastAllocated"
    in_runs = True
    scope: Literal[Scope.LOCAL] = LOCAL
    batch = True
    _formula = Formula.LEAST_ALLOCATED
    _strategy: ClassVar[ResourceScore] = LEAST_ALLOCATED

    def __init__(self, session: Session, weight: int) -> None:
        self._numbers = session.numbers
        self._weight = weight
        self._complete = bool((session.numbers.kube_capacity > 0).all())
        """Whether every node has cpu and memory."""

    def applies(self, task: Task) -> bool:
        return True

    def score(self, task: Task, numbers: Numbers) -> Floats:
        capacity = numbers.kube_capacity
        used = numbers.kube_nonzero + task.spec_class.nonzero[:, None]
        if self._complete:
            found = mean_of_two(self._strategy, used, capacity)
        else:
            both = zip(used, capacity, (1, 1), strict=True)
            found = means(self._strategy, list(both), len(numbers.max_pods))
        return found if self._weight == 1 else found * self._weight

    def score_node(self, task: Task, node: int) -> float:
        n, (cpu, memory) = self._numbers, task.spec_class.nonzero.tolist()
        uses = [
            (int(n.kube_nonzero.item(row, node) + request), int(n.kube_capacity.item(row, node)), 1)
            for row, request in ((0, cpu), (1, memory))
        ]
        return float(self._weight * mean(self._strategy, uses))

    def term(self, task: Task) -> FormulaTerm:
        return FormulaTerm(self._formula, (float(self._weight), *task.spec_class.nonzero.tolist()))


class MostAllocated(LeastAllocated):
    """Prefer nodes with less free capacity."""

    name = "MostAllocated"
    _formula = Formula.MOST_ALLOCATED
    _strategy = MOST_ALLOCATED


class BalancedAllocation:
    """Prefer nodes whose resources (cpu, memory and GPUs) the pod makes more evenly used (Kubernetes 1.36)."""

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
            with_pod = evennesses(numbers.kube_requested[:2] + request, numbers.kube_capacity)
            score = balances(with_pod, self._without(numbers))
            return score if self._weight == 1 else score * self._weight
        rows = [row for row, _ in dimensions]
        capacities = [numbers.kube_capacity[row] if row < 2 else numbers.allocatable[row] for row in rows]
        used = [numbers.kube_requested[row] for row in rows]
        requests = [request for _, request in dimensions]
        columns = zip(np.array(capacities).T.tolist(), np.array(used).T.tolist(), strict=True)
        return np.array([self._weight * balance(c, u, requests) for c, u in columns], dtype=np.float64)

    def _without(self, numbers: Numbers) -> Floats:
        """The part of the score that is the same for all pods; only changed columns are computed again."""
        if isinstance(numbers, FilledNodes):
            return evennesses(numbers.kube_requested[:2], numbers.kube_capacity)
        n = self._numbers
        if self._position < 0:
            self._now = evennesses(n.kube_requested[:2], n.kube_capacity)
        elif self._position != n.log.position:
            changed = n.log.since(self._position)
            if len(changed) > _SCALAR_LIMIT:
                self._now[changed] = evennesses(n.kube_requested[:2, changed], n.kube_capacity[:, changed])
            else:
                for node in changed:
                    self._now[node] = evenness(n.kube_requested[:2, node].tolist(), n.kube_capacity[:, node].tolist())
        self._position = n.log.position
        return self._now[numbers.nodes] if isinstance(numbers, SomeNodes) else self._now

    def score_node(self, task: Task, node: int) -> float:
        n, dimensions = self._numbers, self._dimensions(task)
        capacities = [(n.kube_capacity if row < 2 else n.allocatable).item(row, node) for row, _ in dimensions]
        used = [n.kube_requested.item(row, node) for row, _ in dimensions]
        return float(self._weight * balance(capacities, used, [request for _, request in dimensions]))

    def term(self, task: Task) -> FormulaTerm | None:
        if task.request[NVIDIA_GPU] > 0:
            return None
        return FormulaTerm(Formula.BALANCED, (float(self._weight), task.request.milli_cpu, task.request.memory))
