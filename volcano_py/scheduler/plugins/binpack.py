"""binpack: prefer the fullest node. Volcano: plugin binpack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from msgspec import field

from volcano_py.scheduler.framework.arguments import get_int
from volcano_py.scheduler.framework.kernels.formulas import Formula, FormulaTerm
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_PREFIX = "binpack.resources."


class Binpack(Plugin):
    """See `Arguments`."""

    name = "binpack"
    prefixes = (_PREFIX,)

    class Arguments(PluginArguments):
        weight: int = field(default=1, name="binpack.weight")
        """The weight of the plugin; 0 disables it, a negative value means 1."""
        cpu: int = field(default=1, name="binpack.cpu")
        memory: int = field(default=1, name="binpack.memory")
        resources: str = field(default="", name="binpack.resources")
        """Further resources, separated by commas; `binpack.resources.<name>` sets the weight of each (1)."""
        extra: dict[str, Any] = {}

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.weight = read.weight if read.weight >= 0 else 1
        self.weights: dict[str, int] = {}
        for name in (part.strip() for part in read.resources.split(",")):
            if name:
                weight = get_int(read.extra.get(_PREFIX + name, 1))
                self.weights[name] = weight if weight is not None and weight >= 0 else 1
        self.weights[CPU] = read.cpu if read.cpu >= 0 else 1
        self.weights[MEMORY] = read.memory if read.memory >= 0 else 1

    def on_session_open(self, session: Session) -> None:
        if self.weight:
            session.add_scores(_Fullness(session, self.weight, self.weights))


class _Fullness:
    """The weighted mean of the used part of each requested resource with the task on the node, times 100."""

    name = "binpack"
    prefixes = (_PREFIX,)
    scope: Literal[Scope.LOCAL] = LOCAL
    in_runs = True
    batch = False

    def __init__(self, session: Session, weight: int, weights: dict[str, int]) -> None:
        self._numbers = session.numbers
        self._rows = session.table.rows
        self._weight = weight
        self._weights = weights
        have = session.numbers.allocatable
        self._complete = {row for row in self._rows.values() if (have[row] > 0).all()}
        """Rows of the resources that every node has."""
        self._requests: dict[int, list[tuple[int, float, int]]] = {}

    def applies(self, task: Task) -> bool:
        return True

    def _counted(self, task: Task) -> list[tuple[int, float, int]]:
        """(row, request, weight) of each requested resource that has a weight."""
        known = self._requests.get(task.spec_class.id)
        if known is None:
            known = self._requests[task.spec_class.id] = [
                (self._rows[d], task.request[d], self._weights[d])
                for d in task.request.keys()
                if d in self._weights and task.request[d] >= EPS
            ]
        return known

    def score(self, task: Task, numbers: Numbers) -> Floats:
        counted = self._counted(task)
        weights = sum(weight for _, _, weight in counted)
        if weights == 0:
            return np.zeros(len(numbers.max_pods))
        score: Any = 0.0
        over: Any = False
        for row, request, weight in counted:
            if not weight:
                continue
            capacity = numbers.allocatable[row]
            full = numbers.used[row] + request
            if row in self._complete:
                over = over | (full > capacity)
                score = score + (full / capacity if weight == 1 else full * weight / capacity)
            else:
                has = capacity != 0
                over = over | (has & (full > capacity))
                score = score + np.where(has, full * weight / np.where(has, capacity, 1.0), 0.0)
        score = score / weights * (100 * self._weight)
        score[over] = 0.0
        found: Floats = score
        return found

    def score_node(self, task: Task, node: int) -> float:
        n = self._numbers
        score, weights = 0.0, 0
        for row, request, weight in self._counted(task):
            capacity = n.allocatable.item(row, node)
            weights += weight
            if capacity and weight:
                full = request + n.used.item(row, node)
                if full > capacity:
                    return 0.0
                score += full * weight / capacity
        if weights > 0:
            score /= weights
        return score * (100 * self._weight)

    def term(self, task: Task) -> FormulaTerm:
        counted = self._counted(task)
        weights = float(sum(weight for _, _, weight in counted))
        each = (float(number) for row, request, weight in counted if weight for number in (row, request, weight))
        return FormulaTerm(Formula.FULLNESS, (*each, weights, 100.0 * self._weight))
