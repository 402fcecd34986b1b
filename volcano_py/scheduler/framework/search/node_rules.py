"""Node rules: how a plugin accepts and scores nodes, in a form that works on all of them at once. Volcano: PredicateFn,
NodeOrderFn, BatchNodeOrderFn.

A filter rejects nodes, a score ranks them (higher is better). Each declares what its result depends on (`Scope`), which
decides when it is called again:

STATIC  the pod's class and the Node object: once per class, until nodes change
LOCAL   the class and that node's numbers: again for the columns that changed
DOMAIN  also other pods and other nodes: in every search

LOCAL rules are functions of explicit numbers, so that they work for all nodes and for some. They also have a form for
one node, because a vector call costs thirty times as much as a plain one; a test verifies that both are equal.
`framework.search.plain_rules` creates rules from plain functions.

A rule may have `in_runs = True`: gangs of equal tasks are then placed at once. LOCAL: the result depends only on the
class and the numbers that are passed in, so that the rule can evaluate a node as it would be with more tasks. DOMAIN
scores: `constant` does not change while equal tasks are placed.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers

Codes = NDArray[np.int8] | NDArray[np.int32]
"""Per node: 0 accepts; i: rejects for reasons[i − 1]. Rules with more than 127 reasons use the wider type."""
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Scope(Enum):
    STATIC = "static"
    LOCAL = "local"
    DOMAIN = "domain"


STATIC: Literal[Scope.STATIC] = Scope.STATIC
LOCAL: Literal[Scope.LOCAL] = Scope.LOCAL
DOMAIN: Literal[Scope.DOMAIN] = Scope.DOMAIN


class WholeFilter(Protocol):
    """A STATIC or DOMAIN filter: one result over all nodes. The reasons of a DOMAIN filter may grow while it
    runs."""

    name: str

    @property
    def scope(self) -> Literal[Scope.STATIC, Scope.DOMAIN]: ...

    reasons: list[Reason]

    def applies(self, task: Task) -> bool:
        """Whether the rule concerns the task; it is not called for others."""
        ...

    def filter(self, task: Task) -> Codes: ...


class LocalFilter(Protocol):
    """A filter over a node's own numbers."""

    name: str

    @property
    def scope(self) -> Literal[Scope.LOCAL]: ...

    reasons: list[Reason]

    def applies(self, task: Task) -> bool: ...

    def filter(self, task: Task, numbers: Numbers) -> Codes: ...

    def filter_node(self, task: Task, node: int) -> int: ...


def follows_dry_runs(rule: Filter) -> bool:
    """Whether preempt calls a filter again after each eviction of a dry run, because it reads what the evicted pods
    hold, such as devices: an optional field of filters with this name. The filters of predicates do not have it: there
    a dry run frees capacity only, as in Volcano. The plugin must follow evictions with an event handler."""
    return bool(getattr(rule, "follows_dry_runs", False))


def limits_pods(rule: Filter, task: Task) -> bool:
    """Whether a filter limits how many such pods a node holds by something else than resources, such as ports or
    devices: an optional field of filters with this name, or a method if it depends on the pod. Reservations place gangs
    on trial that such a filter applies to."""
    limits = getattr(rule, "limits_pods", False)
    return rule.applies(task) and bool(limits(task) if callable(limits) else limits)


@runtime_checkable
class IdleGate(Protocol):
    """A LOCAL filter over something other than resources that can be idle now or only later, such as devices. It
    accepts a node that has it later; the task can start now only where it is idle."""

    def idle(self, task: Task, numbers: Numbers) -> Bools: ...

    def idle_node(self, task: Task, node: int) -> bool: ...


def is_idle_gate(rule: LocalFilter) -> TypeGuard[IdleGate]:
    """Whether a filter is an `IdleGate`. Checked once a type: a check against a Protocol takes microseconds."""
    return _is_idle_gate(type(rule))


@cache
def _is_idle_gate(rule: type[LocalFilter]) -> bool:
    return issubclass(rule, IdleGate)


class StaticScore(Protocol):
    """A score that depends on the Node object. `batch`: in which of Volcano's two sums it counts."""

    name: str

    @property
    def scope(self) -> Literal[Scope.STATIC]: ...

    batch: bool

    def applies(self, task: Task) -> bool: ...

    def score(self, task: Task) -> Floats: ...


class LocalScore(Protocol):
    """A score over a node's own numbers."""

    name: str

    @property
    def scope(self) -> Literal[Scope.LOCAL]: ...

    batch: bool

    def applies(self, task: Task) -> bool: ...

    def score(self, task: Task, numbers: Numbers) -> Floats: ...

    def score_node(self, task: Task, node: int) -> float: ...


class DomainScore(Protocol):
    """A score that is normalised over the candidates, or depends on other nodes."""

    name: str

    @property
    def scope(self) -> Literal[Scope.DOMAIN]: ...

    batch: bool

    def applies(self, task: Task) -> bool: ...

    def score(self, task: Task, candidates: Indices) -> Floats: ...

    def constant(self, task: Task) -> float | None:
        """The score of every node if it is the same for all; None if not."""
        ...


Filter = WholeFilter | LocalFilter
Score = StaticScore | LocalScore | DomainScore
