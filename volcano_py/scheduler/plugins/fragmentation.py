"""fragmentation: prefer the node where placing a pod makes the fewest free GPUs useless for the pods of the cluster.
Not in Volcano.

It is the fragmentation gradient descent of Weng et al. (USENIX ATC 2023). The loss of a node is the free GPU on it that
a pod cannot use, as the mean over the shapes of GPU pods, by how often each occurs. A pod for which the node has too
little of anything loses all of its free GPU; one that fits loses the rest of a card that is too small for it. The score
is the loss before, minus the loss after. The free share of each card counts where a plugin that assigns cards publishes
it (`framework.search.free_cards`); else the free GPU of a node counts as whole cards and the rest of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any, Literal

import msgspec
import numpy as np

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.free_cards import (
    CardBook,
    CardNeeds,
    ExactCards,
    FreeCards,
    PooledCards,
    PublishedCards,
)
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes, columns_of
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_SHAPES = 24
"""The most frequent shapes of pods that count."""
Shape = tuple[float, float, CardNeeds]
"""cpu, memory, cards."""


class Fragmentation(Plugin):
    """See `Arguments`."""

    name = "fragmentation"

    class Arguments(PluginArguments):
        weight: int = 10
        """The weight of the score: a card that becomes useless counts ten times this."""
        gpu: str = "nvidia.com/gpu"
        """The resource of GPUs."""
        card: int = msgspec.field(default=1)
        """How much of the resource is one card; more than 1 if pods request parts of a card."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.weight = read.weight
        if not 0 <= self.weight <= 1_000_000:
            self.warn(f"argument weight is {self.weight}, and must be from 0 to 1000000; 10 is used")
            self.weight = 10
        self.card = read.card
        if self.card < 1:
            self.warn(f"argument card is {self.card}, and must be at least 1; 1 is used")
            self.card = 1

    def on_session_open(self, session: Session) -> None:
        gpu = self.arguments.gpu
        if self.weight and gpu in session.table.rows:
            card = Resource.parse({gpu: str(self.card)})[gpu]
            session.add_scores(_Gradient(session, gpu, card, 10.0 * self.weight))


@dataclass
class _Counts:
    """How often each shape of GPU pods occurs in the cluster, and by job what is counted of it."""

    total: Counter[Shape] = field(default_factory=Counter)
    of_job: dict[str, Counter[Shape]] = field(default_factory=dict)


def _mix(cluster: Cluster, version: object, needs: Callable[[Task], CardNeeds | None]) -> list[tuple[Shape, float]]:
    """The most frequent shapes of GPU pods with their shares, of all jobs of the cluster that have not ended. With
    another `version`, they are counted again."""

    def apply(state: _Counts, cluster: Cluster, changed: set[str]) -> None:
        for uid in changed:
            state.total.subtract(state.of_job.pop(uid, Counter()))
            job = cluster.jobs.get(uid)
            shapes = Counter(
                (task.request[CPU], task.request[MEMORY], of_task)
                for task in (job.tasks.values() if job is not None else ())
                if (of_task := needs(task)) is not None
            )
            if shapes:
                state.of_job[uid] = shapes
                state.total.update(shapes)

    def build(cluster: Cluster) -> _Counts:
        state = _Counts()
        apply(state, cluster, set(cluster.jobs))
        return state

    total = state_of(cluster, "fragmentation", version, build, apply).total
    frequent = sorted(((-count, shape) for shape, count in total.items() if count > 0))[:_SHAPES]
    counted = -sum(count for count, _ in frequent)
    return [(shape, -count / counted) for count, shape in frequent]


class _Gradient:
    """The loss of a node before the task, minus the loss after it."""

    name = "fragmentation"
    scope: Literal[Scope.LOCAL] = LOCAL
    batch = False

    def __init__(self, session: Session, gpu: str, card: float, weight: float) -> None:
        self._session = session
        self._numbers = session.numbers
        self._cpu, self._memory = (session.table.rows[name] for name in (CPU, MEMORY))
        self._gpu = gpu
        self._row = session.table.rows[gpu]
        self._card = card
        self._weight = weight

    @property
    def in_runs(self) -> bool:
        """The cards that several pods would get are only in the book when they are placed one after another."""
        return self._book is None

    @cached_property
    def _book(self) -> CardBook | None:
        """The exact cards; looked up after all plugins have opened the session."""
        return self._session.shared(PublishedCards, PublishedCards).of.get(self._gpu)

    @cached_property
    def _shapes(self) -> list[tuple[Shape, float]]:
        version = (self._gpu, self._card, self._book is not None)
        return _mix(self._session.cluster, version, self._needs if self._book is None else self._book.needs)

    def _needs(self, task: Task) -> CardNeeds | None:
        """The cards of a pod, by what it requests of the pool."""
        amount = task.request[self._gpu]
        if amount < EPS:
            return None
        if amount < self._card - EPS:
            return CardNeeds(1, amount)
        return CardNeeds(ceil((amount - EPS) / self._card), self._card)

    def applies(self, task: Task) -> bool:
        return bool(self._shapes)

    def score(self, task: Task, numbers: Numbers) -> Floats:
        cpu, memory = numbers.idle[self._cpu], numbers.idle[self._memory]
        before, after = self._cards(task, numbers)
        request = task.request
        loss = self._loss(cpu - request[CPU], memory - request[MEMORY], after)
        return (self._loss(cpu, memory, before) - loss) * self._weight / self._one_card

    def score_node(self, task: Task, node: int) -> float:
        here = SomeNodes(self._numbers, np.array([node], dtype=np.intp))
        return float(self.score(task, here)[0])

    def _cards(self, task: Task, numbers: Numbers) -> tuple[FreeCards, FreeCards]:
        """The free cards before and after the placement of a task."""
        if self._book is None:
            gpu = numbers.idle[self._row]
            return PooledCards(gpu, self._card), PooledCards(gpu - task.request[self._gpu], self._card)
        cards, needs = ExactCards(self._book.free(columns_of(numbers))), self._book.needs(task)
        return cards, cards if needs is None else cards.without(needs)

    @cached_property
    def _one_card(self) -> float:
        """What counts as one card in the score; of exact cards, the most that a pod of the mix takes of one."""
        if self._book is None:
            return self._card
        return max(needs.amount for (_, _, needs), _ in self._shapes)

    def _loss(self, cpu: Floats, memory: Floats, cards: FreeCards) -> Floats:
        """The free GPU that the shapes cannot use, as the mean."""
        lost = np.zeros_like(cards.total)
        by_amount: dict[float, tuple[Floats, Floats]] = {}
        for (cpu_of, memory_of, (count, amount)), share in self._shapes:
            if amount not in by_amount:
                by_amount[amount] = cards.able(amount), cards.too_small(amount)
            able, too_small = by_amount[amount]
            fits = (cpu >= cpu_of - EPS) & (memory >= memory_of - EPS) & (able >= count)
            lost += share * np.where(fits, too_small, cards.total)
        return lost
