"""The ledger: the cards of one type on every node, and the pods that hold them, in one session.

The books of each node are kept between sessions and built again when its Node object or one of its pods changes. A
session books on copies. Whether cards fit a demand is computed once for each class of pods and each state of cards:
nodes with cards in equal states share the result.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, Bools, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes
from volcano_py.scheduler.plugins.deviceshare.device_type import BookedDevices, DeviceType, Fit

_UNKNOWN = -1
_MAX_STATES = 100_000
"""The number of states of cards that are kept; beyond it their numbers start again."""


@dataclass
class _Books:
    """The cards of one type, by node, with the bookings of the pods on the nodes."""

    version: object = None
    position: int = 0
    cards: dict[str, BookedDevices] = field(default_factory=dict)
    held: dict[str, BookedDevices] = field(default_factory=dict)
    """For nodes with terminating pods: the cards including these pods, which hold their cards until they are
    deleted."""
    states: dict[Hashable, int] = field(default_factory=dict)
    """The number of each known state of cards."""


@dataclass
class DeviceBooks:
    """Books by device type, kept between sessions."""

    of: dict[str, _Books] = field(default_factory=dict)


def books_of(cluster: Cluster, type_: DeviceType, version: object) -> _Books:
    """The current books of a device type. `version`: another value causes them to be built again."""
    books = cluster.keep(DeviceBooks).of.setdefault(type_.name, _Books())
    position = cluster.node_changes.position
    changed = cluster.node_changes.since(books.position) if books.version == version else None
    if changed is None:
        changed = set(cluster.nodes.names)
        books.cards.clear()
        books.held.clear()
    books.version, books.position = version, position
    changed = changed | type_.moved
    if len(books.states) > _MAX_STATES:
        books.states.clear()
    for name in changed:
        node = cluster.nodes.index.get(name)
        books.cards.pop(name, None)
        books.held.pop(name, None)
        cards = None if node is None else type_.cards(cluster.nodes.objects[node])
        if cards is not None:
            books.cards[name] = cards
            held = _count_pods(cluster, name, cards)
            if held is not None:
                books.held[name] = held
    return books


def _count_pods(cluster: Cluster, node: str, cards: BookedDevices) -> BookedDevices | None:
    """Book the pods of a node that are not terminating; returns a copy that includes the terminating pods, if any."""
    here = [task for task in cluster.on_node.get(node, {}).values() if task.annotations]
    for task in here:
        if task.status != st.RELEASING:
            cards.count(task)
    leaving = [task for task in here if task.status == st.RELEASING]
    if not leaving:
        return None
    held = cards.clone()
    for task in leaving:
        held.count(task)
    return held


class _Answers:
    """The results for one class of pods, by the number of the cards' state."""

    __slots__ = ("codes", "scores")

    def __init__(self) -> None:
        self.codes = np.full(64, _UNKNOWN, dtype=np.int8)
        self.scores = np.zeros(64)

    def reach(self, count: int) -> None:
        """Grow the arrays to this number of states."""
        more = count - len(self.codes)
        if more > 0:
            more = max(more, len(self.codes))
            self.codes = np.concatenate([self.codes, np.full(more, _UNKNOWN, dtype=np.int8)])
            self.scores = np.concatenate([self.scores, np.zeros(more)])


class Ledger:
    """The cards of one type in a session. `exact`: see the deviation exact-devices."""

    def __init__(self, session: Session, type_: DeviceType, version: object, exact: bool) -> None:
        self.type = type_
        self._session = session
        self._exact = exact
        self._books = books_of(session.cluster, type_, version)
        index = session.table.index
        self._cards: dict[int, BookedDevices] = {index[name]: cards for name, cards in self._books.cards.items()}
        self._held: dict[int, BookedDevices] = {}
        """For nodes with terminating pods: the cards including these pods; a copy of this session."""
        if exact:
            self._held = {index[name]: held.clone() for name, held in self._books.held.items()}
        self._own: set[int] = set()
        """Columns whose cards are copies of this session."""
        self._states: NDArray[np.int32] | None = None
        """The number of the cards' state, by column; number 0 is the state of a node without cards."""
        self._demands: dict[int, Any] = {}
        self._answers: dict[int, _Answers] = {}

    def demand(self, task: Task) -> Any:
        """The demand of a class of pods; None: they request no device of this type."""
        key = task.spec_class.id
        if key not in self._demands:
            self._demands[key] = self.type.demand(task.pod)
        return self._demands[key]

    def cards(self, node: int) -> BookedDevices | None:
        """The cards of a node. Read-only."""
        return self._cards.get(node)

    def columns(self) -> Iterator[int]:
        """The nodes that have cards."""
        return iter(self._cards)

    # ---- checking ---------------------------------------------------------------------------------------

    def fit(self, demand: Any, node: int) -> Fit:
        """Whether one node's cards fit a demand; a node without cards is not rejected."""
        cards = self._cards.get(node)
        return Fit(0) if cards is None else cards.fit(demand)

    def fits(self, task: Task, nodes: Any) -> tuple[Codes, Floats]:
        """Codes and scores of some nodes, for the demand of the task's class."""
        demand = self.demand(task)
        if not self.type.is_shared(demand):
            columns = range(len(self._session.table)) if isinstance(nodes, slice) else nodes.tolist()
            found = [self.fit(demand, node) for node in columns]
            return np.array([f.code for f in found], dtype=np.int8), np.array([f.score for f in found])
        answers = self._answers.setdefault(task.spec_class.id, _Answers())
        states = self._all_states()[nodes]
        answers.reach(len(self._books.states) + 1)
        unknown = answers.codes[states] == _UNKNOWN
        if unknown.any():
            columns = np.arange(len(self._session.table))[nodes]
            some, first = np.unique(states[unknown], return_index=True)
            for state, node in zip(some.tolist(), columns[unknown][first].tolist(), strict=True):
                answers.codes[state], answers.scores[state] = self.fit(demand, node)
        return answers.codes[states], answers.scores[states]

    def fit_one(self, task: Task, node: int) -> Fit:
        """The same for one node."""
        demand = self.demand(task)
        if not self.type.is_shared(demand):
            return self.fit(demand, node)
        answers = self._answers.setdefault(task.spec_class.id, _Answers())
        answers.reach(len(self._books.states) + 1)
        state = self._all_states().item(node)
        if answers.codes[state] == _UNKNOWN:
            answers.codes[state], answers.scores[state] = self.fit(demand, node)
        return Fit(answers.codes.item(state), answers.scores.item(state))

    def idle(self, task: Task, nodes: Any) -> NDArray[np.bool_]:
        """Which of some nodes have idle cards for a class now, without those of terminating pods."""
        columns = range(len(self._session.table)) if isinstance(nodes, slice) else nodes.tolist()
        found = np.ones(len(columns), dtype=bool)
        if self._held:
            demand = self.demand(task)
            for i, node in enumerate(columns):
                if node in self._held:
                    found[i] = self._held[node].fit(demand).code == 0
        return found

    def idle_one(self, task: Task, node: int) -> bool:
        """The same for one node."""
        held = self._held.get(node)
        return held is None or held.fit(self.demand(task)).code == 0

    def _all_states(self) -> NDArray[np.int32]:
        if self._states is None:
            self._states = np.zeros(len(self._session.table), dtype=np.int32)
            for node, cards in self._cards.items():
                self._states[node] = self._number(cards)
        return self._states

    def _number(self, cards: BookedDevices) -> int:
        return self._books.states.setdefault(cards.state(), len(self._books.states) + 1)

    # ---- booking ----------------------------------------------------------------------------------------

    def allocate(self, task: Task, node: int) -> tuple[dict[str, str], str | None]:
        """Book cards for a task that gets a node, or whose eviction is undone: (annotations, error)."""
        cards = self._to_write(node)
        demand = self.demand(task)
        if cards is None or demand is None:
            return {}, None
        annotations: dict[str, str] = {}
        error = None
        if task.takes_capacity:
            cards.count(task)
        if not task.takes_capacity or not self._exact:
            # Volcano books a pod whose eviction is undone a second time.
            annotations, error = self._take(self.type.of_pod(demand, task), task, node, cards)
        self._moved(node, cards)
        return annotations, error

    def _take(self, demand: Any, task: Task, node: int, cards: BookedDevices) -> tuple[dict[str, str], str | None]:
        """Book cards; a task that goes to the node at once gets idle ones."""
        held = self._held.get(node)
        at_once = held is not None and self._session.status(task) != st.PIPELINED
        first, second = (held, cards) if held is not None and at_once else (cards, held)
        annotations, error = first.take(demand, task)
        if error is None and second is not None:
            before, task.assigned = task.assigned, annotations
            second.count(task)
            task.assigned = before
        return annotations, error

    def simulate(self, task: Task, node: int, sign: int) -> None:
        """Count a task that was on the node before the session (+1), or no longer (-1). Volcano's dry runs add pods to
        a copy of the node and remove them."""
        cards = self._to_write(node)
        if cards is None or self.demand(task) is None:
            return
        if sign > 0:
            cards.count(task)
        else:
            cards.uncount(task)
        self._moved(node, cards)

    def deallocate(self, task: Task, node: int) -> None:
        """Free the cards of a task that leaves its node."""
        cards = self._to_write(node)
        if cards is None or self.demand(task) is None:
            return
        if task.takes_capacity and not self._exact:
            cards.uncount(task)
        held = self._held.get(node)
        if self._exact and task.takes_capacity:
            if held is None:  # an evicted pod holds its cards until it is deleted
                self._held[node] = cards.clone()
        elif held is not None:
            held.release(task)
        cards.release(task)
        self._moved(node, cards)

    def _to_write(self, node: int) -> BookedDevices | None:
        cards = self._cards.get(node)
        if cards is not None and node not in self._own:
            cards = self._cards[node] = cards.clone()
            self._own.add(node)
        return cards

    def _moved(self, node: int, cards: BookedDevices) -> None:
        if self._states is not None:
            self._states[node] = self._number(cards)


class CardFilter:
    """Reject nodes whose cards do not fit the demand of a class."""

    scope: Literal[Scope.LOCAL] = LOCAL
    follows_dry_runs = True
    limits_pods = True

    def __init__(self, ledger: Ledger) -> None:
        self.name = f"deviceshare/{ledger.type.name}"
        self.reasons = list(ledger.type.reasons)
        self._ledger = ledger

    def applies(self, task: Task) -> bool:
        return self._ledger.demand(task) is not None

    def filter(self, task: Task, numbers: Numbers) -> Codes:
        return self._ledger.fits(task, columns_of(numbers))[0]

    def filter_node(self, task: Task, node: int) -> int:
        return self._ledger.fit_one(task, node).code

    def idle(self, task: Task, numbers: Numbers) -> Bools:
        return self._ledger.idle(task, columns_of(numbers))

    def idle_node(self, task: Task, node: int) -> bool:
        return self._ledger.idle_one(task, node)


class PodCardFilter:
    """Reject nodes whose cards do not fit one pod, if its labels matter."""

    scope: Literal[Scope.DOMAIN] = DOMAIN
    follows_dry_runs = True
    limits_pods = True

    def __init__(self, ledger: Ledger) -> None:
        self.name = f"deviceshare/{ledger.type.name}/pod"
        self.reasons = list(ledger.type.reasons)
        self._ledger = ledger
        self._count = len(ledger._session.table)

    def applies(self, task: Task) -> bool:
        return self._ledger.demand(task) is not None

    def filter(self, task: Task) -> Codes:
        codes = np.zeros(self._count, dtype=np.int8)
        of_class = self._ledger.demand(task)
        demand = self._ledger.type.of_pod(of_class, task)
        if demand != of_class:
            for node in self._ledger.columns():
                codes[node] = self._ledger.fit(demand, node).code
        return codes


class CardScore:
    """Score nodes by their cards, rounded and weighted."""

    name = "deviceshare"
    scope: Literal[Scope.LOCAL] = LOCAL
    batch = False

    def __init__(self, ledgers: list[Ledger], weight: int) -> None:
        self._ledgers = ledgers
        self._weight = weight

    def applies(self, task: Task) -> bool:
        return any(ledger.demand(task) is not None for ledger in self._ledgers)

    def score(self, task: Task, numbers: Numbers) -> Floats:
        total: Floats = np.zeros(len(numbers.max_pods))
        for ledger in self._ledgers:
            if ledger.demand(task) is not None:
                total += ledger.fits(task, columns_of(numbers))[1]
        return np.floor(total + 0.5) * self._weight

    def score_node(self, task: Task, node: int) -> float:
        total = sum(ledger.fit_one(task, node).score for ledger in self._ledgers if ledger.demand(task) is not None)
        return float(int(total + 0.5) * self._weight)


def columns_of(numbers: Numbers) -> Any:
    """The columns of these numbers."""
    return numbers.nodes if isinstance(numbers, SomeNodes) else slice(None)
