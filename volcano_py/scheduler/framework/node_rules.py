"""Node rules: what a plugin says about nodes, in a form that works on all of them at once.

A `Filter` refuses nodes, a `Score` rates them. Both say how far their answer reaches (`Scope`), which decides
when it has to be asked again:

STATIC  the pod's class and the Node object: once a class, until nodes change
LOCAL   the class and that node's numbers: again for the columns that changed
DOMAIN  other pods and other nodes, too: at every look

Rules get node columns as an index: `slice(None)` or an array of columns. LOCAL rules also have a form for one
node, because a vector call costs thirty times as much as a plain one; a test proves the two forms equal.

The plain doors `predicate(task, node) -> Reason | None` and `score(task, node) -> float` are wrapped into
rules here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.model.task import Task

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

Columns = Any
"""slice(None) or an integer array: which nodes."""
Codes = NDArray[np.int8]
"""0: fits; i: refused for reasons[i − 1]."""
Floats = NDArray[np.float64]


class Scope(Enum):
    STATIC = "static"
    LOCAL = "local"
    DOMAIN = "domain"


class Filter(Protocol):
    """Refuses nodes. `reasons` are fixed, or for scope DOMAIN may grow while it answers."""

    name: str
    scope: Scope
    reasons: list[Reason]

    def applies(self, task: Task) -> bool:
        """False: the task has nothing that this rule looks at."""
        ...

    def codes(self, task: Task, nodes: Columns) -> Codes: ...

    def code(self, task: Task, node: int) -> int: ...


class Score(Protocol):
    """Rates nodes; higher is better. `batch` tells in which of Volcano's two sums it counts.

    STATIC and LOCAL scores rate a node by itself (`rate`, `rate_one`); DOMAIN ones are normalised over the
    candidates (`over`).
    """

    name: str
    scope: Scope
    batch: bool

    def applies(self, task: Task) -> bool: ...

    def rate(self, task: Task, nodes: Columns) -> Floats: ...

    def rate_one(self, task: Task, node: int) -> float: ...

    def over(self, task: Task, candidates: NDArray[np.intp]) -> Floats: ...

    def constant(self, task: Task) -> float | None:
        """For DOMAIN scores: the rate of every node if all are the same; None if not."""
        ...


class PlainPredicate:
    """A function of task and node as a filter."""

    scope = Scope.DOMAIN

    def __init__(self, name: str, session: Session, ask: Callable[[Task, str], Any]) -> None:
        self.name = name
        self.reasons: list[Reason] = []
        self._session = session
        self._ask = ask
        self._known: dict[Reason, int] = {}

    def applies(self, task: Task) -> bool:
        return True

    def codes(self, task: Task, nodes: Columns) -> Codes:
        columns = np.arange(len(self._session.table))[nodes]
        return np.array([self.code(task, int(n)) for n in columns], dtype=np.int8)

    def code(self, task: Task, node: int) -> int:
        try:
            answer = self._ask(task, self._session.table.names[node])
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
    """A function of task and node as a score."""

    scope = Scope.DOMAIN
    batch = False

    def __init__(self, name: str, session: Session, ask: Callable[[Task, str], float]) -> None:
        self.name = name
        self._session = session
        self._ask = ask

    def applies(self, task: Task) -> bool:
        return True

    def rate(self, task: Task, nodes: Columns) -> Floats:
        columns = np.arange(len(self._session.table))[nodes]
        return np.array([self.rate_one(task, int(n)) for n in columns])

    def rate_one(self, task: Task, node: int) -> float:
        try:
            return float(self._ask(task, self._session.table.names[node]))
        except Exception as e:
            self._session.votes.fault(self.name, "score", e, task.key)
            return 0.0

    def over(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        return self.rate(task, candidates)

    def constant(self, task: Task) -> float | None:
        return None
