"""Node rules: what a plugin says about nodes, in a form that works on all of them at once.

A filter refuses nodes, a score rates them (higher is better). Each says how far its answer reaches (`Scope`),
which decides when it has to be asked again:

STATIC  the pod's class and the Node object: once a class, until nodes change
LOCAL   the class and that node's numbers: again for the columns that changed
DOMAIN  other pods and other nodes, too: at every look

LOCAL rules are written over explicit numbers, so that they serve all nodes, some nodes, and numbers that are
not the table's. They also have a form for one node, because a vector call costs thirty times as much as a
plain one; a test proves the two equal.

The plain doors `predicate(task, node) -> Reason | None` and `score(task, node) -> float` are wrapped into
rules here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.model.node_table import Numbers
from volcano_py.scheduler.model.task import Task

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

Codes = NDArray[np.int8]
"""Per node: 0 fits; i: refused for reasons[i − 1]."""
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
    """A STATIC or DOMAIN filter: one answer over all nodes. The reasons of a DOMAIN filter may grow while it
    answers."""

    name: str

    @property
    def scope(self) -> Literal[Scope.STATIC, Scope.DOMAIN]: ...

    reasons: list[Reason]

    def applies(self, task: Task) -> bool:
        """False: the task has nothing that this rule looks at."""
        ...

    def codes(self, task: Task) -> Codes: ...


class LocalFilter(Protocol):
    """A filter over a node's own numbers."""

    name: str

    @property
    def scope(self) -> Literal[Scope.LOCAL]: ...

    reasons: list[Reason]

    def applies(self, task: Task) -> bool: ...

    def codes(self, task: Task, numbers: Numbers) -> Codes: ...

    def code(self, task: Task, node: int) -> int: ...


class StaticScore(Protocol):
    """A score that depends on the Node object. `batch` tells in which of Volcano's two sums it counts."""

    name: str

    @property
    def scope(self) -> Literal[Scope.STATIC]: ...

    batch: bool

    def applies(self, task: Task) -> bool: ...

    def rate(self, task: Task) -> Floats: ...


class LocalScore(Protocol):
    """A score over a node's own numbers."""

    name: str

    @property
    def scope(self) -> Literal[Scope.LOCAL]: ...

    batch: bool

    def applies(self, task: Task) -> bool: ...

    def rate(self, task: Task, numbers: Numbers) -> Floats: ...

    def rate_one(self, task: Task, node: int) -> float: ...


class DomainScore(Protocol):
    """A score that is normalised over the candidates, or depends on other nodes."""

    name: str

    @property
    def scope(self) -> Literal[Scope.DOMAIN]: ...

    batch: bool

    def applies(self, task: Task) -> bool: ...

    def over(self, task: Task, candidates: Indices) -> Floats: ...

    def constant(self, task: Task) -> float | None:
        """The rate of every node if all are the same; None if not."""
        ...


Filter = WholeFilter | LocalFilter
Score = StaticScore | LocalScore | DomainScore


class PlainPredicate:
    """A function of task and node name as a filter."""

    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, name: str, session: Session, ask: Callable[[Task, str], Any]) -> None:
        self.name = name
        self.reasons: list[Reason] = []
        self._session = session
        self._ask = ask
        self._known: dict[Reason, int] = {}

    def applies(self, task: Task) -> bool:
        return True

    def codes(self, task: Task) -> Codes:
        return np.array([self._code(task, name) for name in self._session.table.names], dtype=np.int8)

    def _code(self, task: Task, node: str) -> int:
        try:
            answer = self._ask(task, node)
        except Exception as e:
            self._session.votes.fault(self.name, "predicate", e, task.key)
            answer = Reason(f"plugin {self.name} failed", Code.ERROR)
        if answer is None:
            return 0
        reason = answer if isinstance(answer, Reason) else Reason(str(answer))
        if reason not in self._known:
            self.reasons.append(reason)
            self._known[reason] = len(self.reasons)
        return self._known[reason]


class PlainScore:
    """A function of task and node name as a score."""

    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = False

    def __init__(self, name: str, session: Session, ask: Callable[[Task, str], float]) -> None:
        self.name = name
        self._session = session
        self._ask = ask

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        return None

    def over(self, task: Task, candidates: Indices) -> Floats:
        names = self._session.table.names
        rates = np.zeros(len(candidates))
        for i, node in enumerate(candidates.tolist()):
            try:
                rates[i] = self._ask(task, names[node])
            except Exception as e:
                self._session.votes.fault(self.name, "score", e, task.key)
        return rates
