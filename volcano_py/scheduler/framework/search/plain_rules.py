"""Rules from plain functions: a function `fn(task, node)` of a plugin author becomes a rule over all nodes. Volcano:
PredicateFn and NodeOrderFn, which are called for every task and node.

The scope decides how often the function is called. STATIC: once for a class of equal pods and each Node object that
changed, also across sessions. LOCAL: once for a class and each node whose numbers changed. DOMAIN: for each pod and
node. An exception is a fault of the plugin: the node is rejected, or the score is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Node
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import (
    DOMAIN,
    LOCAL,
    STATIC,
    Codes,
    Filter,
    Floats,
    Indices,
    Scope,
    Score,
)
from volcano_py.scheduler.framework.search.node_view import NodeView, ViewedSession
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes

Predicate = Callable[[Task, NodeView], Reason | str | None]
NodeScore = Callable[[Task, NodeView], float]


MAX_CLASSES = 4096
"""Number of classes whose results a STATIC rule keeps; beyond that it starts again."""


@dataclass
class _Known:
    """The results of one STATIC rule."""

    reasons: list[Reason] = field(default_factory=list)
    numbers: dict[Reason, int] = field(default_factory=dict)
    """Reason → its number in `reasons`, counted from 1."""
    by_class: dict[int, tuple[list[Node], NDArray[np.float64]]] = field(default_factory=dict)
    """Class → the Node objects that were evaluated, and the results, by column."""


@dataclass
class StaticAnswers:
    """The results of STATIC rules, kept between sessions until the configuration changes."""

    configuration: object = None
    by_rule: dict[str, _Known] = field(default_factory=dict)

    def of(self, rule: str, configuration: object) -> _Known:
        if configuration is not self.configuration:
            self.configuration, self.by_rule = configuration, {}
        known = self.by_rule.setdefault(rule, _Known())
        if len(known.by_class) > MAX_CLASSES:
            known.by_class.clear()
        return known


class _Plain:
    """Common to the rules below. `point`: the extension point in a fault."""

    point = ""

    def __init__(self, name: str, session: ViewedSession, fn: Callable[[Task, NodeView], Any]) -> None:
        self.name = name
        self._fn = fn
        self._session = session

    def applies(self, task: Task) -> bool:
        return True

    def unscoped(self, task: Task, node: int, numbers: bool) -> Any:
        """The function's own result for a pod and a node, whatever is kept for its class."""
        return self._fn(task, self._session.node(node, numbers))

    def _answer(self, task: Task, node: int, numbers: bool, failed: Any) -> Any:
        try:
            return self._fn(task, self._session.node(node, numbers))
        except Exception as e:
            self._session.callbacks.fault(self.name, self.point, e, task.key)
            return failed

    def _all(self) -> range:
        return range(len(self._session.table))

    def _columns(self, numbers: Numbers) -> Sequence[int]:
        return numbers.nodes.tolist() if isinstance(numbers, SomeNodes) else self._all()

    def _known(self) -> _Known:
        session = self._session
        return session.cluster.keep(StaticAnswers).of(f"{self.name}/{self.point}", session.configuration)

    def _once_per_object(self, task: Task, one: Callable[[int], float]) -> NDArray[np.float64]:
        """Results for all nodes; calls the function only where the Node object has changed since the last call."""
        by_class = self._known().by_class
        objects = self._session.table.objects
        before, old = by_class.get(task.spec_class.id, ([], np.zeros(0)))
        count = len(before)
        answers = np.array(
            [old.item(i) if i < count and before[i] is now else one(i) for i, now in enumerate(objects)],
            dtype=np.float64,
        )
        by_class[task.spec_class.id] = (list(objects), answers)
        return answers


class PlainFilter(_Plain):
    """A predicate as a rule."""

    point = "predicate"

    follows_dry_runs = False

    def __init__(self, name: str, session: ViewedSession, fn: Predicate) -> None:
        super().__init__(name, session, fn)
        self.reasons: list[Reason] = []
        self._numbers: dict[Reason, int] = {}

    def _code(self, task: Task, node: int, numbers: bool = True) -> int:
        answer = self._answer(task, node, numbers, Reason(f"plugin {self.name} failed", FitCode.ERROR))
        if answer is None:
            return 0
        reason = answer if isinstance(answer, Reason) else Reason(str(answer))
        number = self._numbers.get(reason)
        if number is None:
            self.reasons.append(reason)
            number = self._numbers[reason] = len(self.reasons)
        return number

    def _codes(self, task: Task, nodes: Sequence[int]) -> Codes:
        return np.array([self._code(task, node) for node in nodes], dtype=np.int32)


class _DomainFilter(PlainFilter):
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def filter(self, task: Task) -> Codes:
        return self._codes(task, self._all())


class _StaticFilter(PlainFilter):
    scope: Literal[Scope.STATIC] = STATIC

    def __init__(self, name: str, session: ViewedSession, fn: Predicate) -> None:
        super().__init__(name, session, fn)
        # Stored codes are indices of stored reasons.
        known = self._known()
        self.reasons, self._numbers = known.reasons, known.numbers

    def filter(self, task: Task) -> Codes:
        codes = self._once_per_object(task, lambda node: self._code(task, node, numbers=False))
        return codes.astype(np.int32)


class _LocalFilter(PlainFilter):
    scope: Literal[Scope.LOCAL] = LOCAL

    def filter(self, task: Task, numbers: Numbers) -> Codes:
        return self._codes(task, self._columns(numbers))

    def filter_node(self, task: Task, node: int) -> int:
        return self._code(task, node)


class PlainScore(_Plain):
    """A node order function as a rule."""

    point = "node_order"
    batch = False

    def _score(self, task: Task, node: int, numbers: bool = True) -> float:
        return float(self._answer(task, node, numbers, 0.0))

    def _scores(self, task: Task, nodes: Sequence[int]) -> Floats:
        return np.array([self._score(task, node) for node in nodes], dtype=np.float64)


class _DomainScore(PlainScore):
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: Indices) -> Floats:
        return self._scores(task, candidates.tolist())


class _StaticScore(PlainScore):
    scope: Literal[Scope.STATIC] = STATIC

    def score(self, task: Task) -> Floats:
        return self._once_per_object(task, lambda node: self._score(task, node, numbers=False))


class _LocalScore(PlainScore):
    scope: Literal[Scope.LOCAL] = LOCAL

    def score(self, task: Task, numbers: Numbers) -> Floats:
        return self._scores(task, self._columns(numbers))

    def score_node(self, task: Task, node: int) -> float:
        return self._score(task, node)


def plain_filter(
    name: str, session: ViewedSession, fn: Predicate, scope: Scope, follows_dry_runs: bool = False
) -> Filter:
    """A predicate as a filter of its scope."""
    kinds: dict[Scope, type[_StaticFilter | _LocalFilter | _DomainFilter]] = {
        STATIC: _StaticFilter,
        LOCAL: _LocalFilter,
        DOMAIN: _DomainFilter,
    }
    made = kinds[scope](name, session, fn)
    made.follows_dry_runs = follows_dry_runs
    return made


def plain_score(name: str, session: ViewedSession, fn: NodeScore, scope: Scope) -> Score:
    """A node order function as a score of its scope."""
    kinds: dict[Scope, Callable[[str, ViewedSession, NodeScore], Score]] = {
        STATIC: _StaticScore,
        LOCAL: _LocalScore,
        DOMAIN: _DomainScore,
    }
    return kinds[scope](name, session, fn)
