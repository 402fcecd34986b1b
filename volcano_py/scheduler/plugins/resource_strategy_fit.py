"""resource-strategy-fit: a packing or spreading strategy for each resource. Volcano: plugin resource-strategy-fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import field
from numpy.typing import NDArray

from volcano_py.api import names
from volcano_py.scheduler.framework.arguments import not_negative
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers
from volcano_py.scheduler.model.nodes.some_nodes import Numbers
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.noderules.listed_resources import listed_resources

MOST = "MostAllocated"
LEAST = "LeastAllocated"
_DEFAULT_WEIGHT = 10


class FitStrategy(msgspec.Struct):
    """The scoring strategy of one resource."""

    type: str = LEAST
    weight: int = 1


class Sra(msgspec.Struct):
    """Keep nodes with scarce resources for pods that request those resources."""

    enable: bool = False
    resources: str = ""
    weight: int = 0
    resource_weight: dict[str, int] = field(default_factory=dict, name="resourceWeight")


class Proportional(msgspec.Struct):
    """Leave cpu and memory idle beside idle devices."""

    enable: bool = False
    resources: str = ""
    resource_proportion: dict[str, float] = field(default_factory=dict, name="resourceProportion")


class IdleProportion(NamedTuple):
    """Cores, and gigabytes of memory (10⁹ bytes), to leave idle for each idle unit of a resource."""

    cpu: float
    memory: float


class ResourceStrategyFit(Plugin):
    """See `Arguments`."""

    name = "resource-strategy-fit"

    class Arguments(PluginArguments):
        weight: int = field(default=_DEFAULT_WEIGHT, name="resourceStrategyFitWeight")
        """The weight of the strategies; a negative value means 10."""
        resources: dict[str, FitStrategy] = {}
        """The strategies by resource name; a name may end in `*`. None: cpu and memory with LeastAllocated."""
        sra: Sra = field(default_factory=Sra)
        proportional: Proportional = field(default_factory=Proportional)

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.weight = read.weight if read.weight >= 0 else _DEFAULT_WEIGHT
        self.sra, self.proportional = read.sra, read.proportional
        self.resources: dict[str, FitStrategy] = {}
        for name, s in (read.resources or {"cpu": FitStrategy(), "memory": FitStrategy()}).items():
            if name == "*" or "*" in name[:-1]:
                continue
            kind = s.type if s.type in (MOST, LEAST) else LEAST
            self.resources[name] = FitStrategy(kind, s.weight if s.weight > 0 else 1)
        self.scarce: dict[str, int] = {}
        """The weight of each resource that sra lists."""
        if self.sra.enable:
            weights = self.sra.resource_weight
            self.scarce = {name: not_negative(weights.get(name, 1), 1) for name in _listed(self.sra.resources)}
        self.proportions: dict[str, IdleProportion] = {}
        """The amounts that stay idle for each resource that `proportional` lists."""
        if self.proportional.enable:
            rates = self.proportional.resource_proportion
            for name in _listed(self.proportional.resources):
                cpu, memory = (not_negative(rates.get(f"{name}.{kind}", 1.0), 1.0) for kind in ("cpu", "memory"))
                self.proportions[name] = IdleProportion(cpu, memory)

    def strategy_of(self, resource: str) -> FitStrategy | None:
        """The strategy of a resource. An exact name has precedence over a pattern, a longer pattern over a shorter
        one."""
        if resource in self.resources:
            return self.resources[resource]
        fitting = [n for n in self.resources if n.endswith("*") and resource.startswith(n[:-1])]
        return self.resources[max(fitting, key=len)] if fitting else None

    def on_session_open(self, session: Session) -> None:
        session.add_scores(_Score(session, self))
        if self.proportional.enable:
            session.add_filters(_Filter(session, self.proportions))


def _listed(resources: str) -> list[str]:
    return [name.strip() for name in resources.split(",") if name.strip()]


class _Score:
    name = "resource-strategy-fit"
    scope: Literal[Scope.LOCAL] = LOCAL
    in_runs = True
    batch = False

    def __init__(self, session: Session, plugin: ResourceStrategyFit) -> None:
        self._numbers = session.numbers
        self._rows = session.table.rows
        self._plugin = plugin

    def applies(self, task: Task) -> bool:
        return True

    def _counted(self, task: Task) -> tuple[list[tuple[int, float, str, int]], int]:
        """(row, request, type, weight) of each resource that is scored, and the sum of the weights."""
        annotations = task.pod.metadata.annotations or {}
        override = annotations.get(names.RESOURCE_STRATEGY_SCORING_TYPE)
        counted = []
        if override:
            try:
                weights = msgspec.json.decode(
                    annotations.get(names.RESOURCE_STRATEGY_WEIGHT, "").encode(), type=dict[str, int]
                )
            except msgspec.DecodeError:
                weights = {}
            kind = override if override in (MOST, LEAST) else LEAST
            counted = [(d, kind, weights[d]) for d in task.request.names() if d in weights]
        else:
            for d in task.request.names():
                strategy = self._plugin.strategy_of(d)
                if strategy is not None:
                    counted.append((d, strategy.type, strategy.weight))
        return [(self._rows[d], task.request[d], kind, w) for d, kind, w in counted], self._plugin.weight

    def score(self, task: Task, numbers: Numbers) -> Floats:
        counted, factor = self._counted(task)
        count = len(numbers.max_pods)
        score, over, weights = np.zeros(count), np.zeros(count, dtype=bool), 0
        for row, request, kind, weight in counted:
            capacity = numbers.allocatable[row]
            has = capacity > 0
            weights += weight
            if weight == 0:
                continue
            full = numbers.used[row] + request
            over |= has & (full > capacity)
            part = (full if kind == MOST else capacity - full) * weight / np.where(has, capacity, 1.0)
            score += np.where(has, part, 0.0)
        if weights > 0:
            score = score / weights
        return np.where(over, 0.0, score * (100 * factor)) + self._scarcities(task, numbers)

    def _scarcities(self, task: Task, numbers: Numbers) -> Floats:
        sra = self._plugin.sra
        count = len(numbers.max_pods)
        if not sra.enable or sra.weight <= 0:
            return np.zeros(count)
        weights, present = sum(self._plugin.scarce.values()), np.zeros(count)
        for name, weight in self._plugin.scarce.items():
            if name in self._rows:
                present += np.where(numbers.allocatable[self._rows[name]] > 0, weight, 0)
        if not weights:
            return np.zeros(count)
        lacking = np.zeros(count, dtype=bool)
        for d in task.request.names():
            lacking |= numbers.allocatable[self._rows[d]] == 0
        return np.where(lacking, 0.0, (1 - present / weights) * (100 * sra.weight))

    def score_node(self, task: Task, node: int) -> float:
        return self._at(task, self._numbers, node)

    def _at(self, task: Task, numbers: Numbers, node: int) -> float:
        return self._strategy(task, numbers, node) + self._scarcity(task, numbers, node)

    def _strategy(self, task: Task, numbers: Numbers, node: int) -> float:
        counted, factor = self._counted(task)
        score, weights = 0.0, 0
        for row, request, kind, weight in counted:
            capacity = numbers.allocatable.item(row, node)
            weights += weight
            if capacity == 0 or weight == 0:
                continue
            full = request + numbers.used.item(row, node)
            if full > capacity:
                return 0.0
            score += (full if kind == MOST else capacity - full) * weight / capacity
        if weights > 0:
            score /= weights
        return score * (100 * factor)

    def _scarcity(self, task: Task, numbers: Numbers, node: int) -> float:
        sra = self._plugin.sra
        if not sra.enable or sra.weight <= 0:
            return 0.0
        for d in task.request.names():
            if numbers.allocatable.item(self._rows[d], node) == 0:
                return 0.0
        weights, present = sum(self._plugin.scarce.values()), 0
        for name, weight in self._plugin.scarce.items():
            row = self._rows.get(name)
            if row is not None and numbers.allocatable.item(row, node) > 0:
                present += weight
        return (1 - present / weights) * (100 * sra.weight) if weights else 0.0


class _Filter:
    """Reject nodes on which too little cpu or memory would be left beside idle devices."""

    name = "resource-strategy-fit"
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, session: Session, proportions: Mapping[str, IdleProportion]) -> None:
        self._numbers: NodeNumbers = session.numbers
        self._rows = session.table.rows
        self._proportions = proportions
        self._known: list[NDArray[np.bool_]] = []
        """For each proportion: the nodes that list the resource, or have a pod that lists it, even with an amount of
        0."""
        named = [listed_resources(session, i) for i in range(len(session.table))]
        for name in proportions:
            self._known.append(np.array([name in of for of in named], dtype=bool))
        self.reasons = [Reason(f"proportional of resource {r} check failed", FitCode.UNRESOLVABLE) for r in proportions]

    def applies(self, task: Task) -> bool:
        return all(task.request[r] < EPS for r in self._proportions)

    def filter(self, task: Task) -> Codes:
        n = self._numbers
        codes = np.zeros(len(n.max_pods), dtype=np.int8)
        for i, (name, keep) in enumerate(self._proportions.items()):
            row = self._rows.get(name)
            if row is None:
                continue
            idle: NDArray[np.float64] = n.idle[row]
            short = (n.idle[0] - task.request.milli_cpu < idle * keep.cpu) | (
                n.idle[1] - task.request.memory < idle * keep.memory * 1000 * 1000
            )
            counted = self._known[i] | (idle != 0)  # pods may hold it on a node that does not list it
            codes[(codes == 0) & counted & short] = i + 1
        return codes
