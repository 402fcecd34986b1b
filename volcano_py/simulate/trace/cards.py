"""The cards of a trace's nodes: a share belongs to one card, and whole cards to one pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.simulate.trace.jobs import GPU, TraceJob, TraceNode

NAME = "trace-cards"
WHOLE = 1000
Ints = NDArray[np.int64]


class Cards:
    """What is free of each card, in thousandths: by node and card; nodes with fewer cards have 0 for the others."""

    def __init__(self, nodes: Sequence[TraceNode]) -> None:
        counts = [node.capacity.get(GPU, 0) // WHOLE for node in nodes]
        self.free: Ints = np.zeros((len(nodes), max(counts, default=0)), dtype=np.int64)
        for row, count in enumerate(counts):
            self.free[row, :count] = WHOLE


def fitting(free: Ints, job: TraceJob) -> NDArray[np.bool_]:
    """The nodes with enough cards for a pod."""
    found: NDArray[np.bool_] = (free >= job.share).sum(axis=1) >= job.cards
    return found


def take(free: Ints, node: int, job: TraceJob) -> list[int]:
    """Take the cards of a pod: of those that have enough, the fullest. Returns them; empty: there are too few."""
    here = free[node]
    able = [int(card) for card in np.argsort(here, kind="stable") if here[card] >= job.share]
    chosen = able[: job.cards]
    if len(chosen) < job.cards:
        return []
    here[chosen] -= job.share
    return chosen


def cards_plugin(cards: Cards, column: dict[str, int], jobs: dict[str, TraceJob]) -> Callable[..., Plugin]:
    """The plugin that has sessions follow the cards. `column`: the row of each node; `jobs`: by name."""

    class TraceCards(Plugin):
        name = NAME

        def on_session_open(self, session: Session) -> None:
            free = cards.free.copy()
            row = np.array([column[name] for name in session.table.names], dtype=np.intp)
            taken: dict[str, tuple[int, list[int]]] = {}

            def placed(task: Task, node: int) -> str | None:
                job = jobs[task.job.partition("/")[2]]
                if not job.cards:
                    return None
                found = take(free, int(row[node]), job)
                if not found:
                    return "no card has enough"
                taken[task.key] = int(row[node]), found
                return None

            def removed(task: Task, node: int) -> None:
                if task.key in taken:
                    at, found = taken.pop(task.key)
                    free[at, found] += jobs[task.job.partition("/")[2]].share

            session.add_filters(_Filter(free, row, jobs))
            session.add_event_handler(placed, removed)

    return TraceCards


class _Filter:
    name = NAME
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, free: Ints, row: NDArray[np.intp], jobs: dict[str, TraceJob]) -> None:
        self.reasons = [Reason("no card has enough")]
        self._free, self._row, self._jobs = free, row, jobs

    def _job(self, task: Task) -> TraceJob:
        return self._jobs[task.job.partition("/")[2]]

    def applies(self, task: Task) -> bool:
        return self._job(task).cards > 0

    def filter(self, task: Task) -> Codes:
        return (~fitting(self._free, self._job(task)))[self._row].astype(np.int8)
