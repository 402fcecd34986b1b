"""What ours would start against what the live scheduler starts, job by job. Pure: times are arguments.

A job that ours would start, and the live scheduler does not, is noted from the first cycle of ours that starts it on;
it is a difference when that has lasted for the settle time, and the live scheduler has bound nothing for as long.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from volcano_py.scheduler.shadow.observed import PATIENCE
from volcano_py.scheduler.shadow.trial import Verdict

Outcome = Literal["same", "live-only", "ours-only"]
OUTCOMES: tuple[Outcome, ...] = ("same", "live-only", "ours-only")
KEPT = 200
"""Differences that are kept for the report, and jobs that would have started earlier: the newest ones."""
LIVE_WAITS = "LiveWaits"
"""The code of ours-only."""


class Difference(NamedTuple):
    """A job that one of the schedulers starts. `code`: why the other one does not (table of reasons, or LiveWaits)."""

    time: float
    job: str
    outcome: Outcome
    code: str
    why: str


class Earlier(NamedTuple):
    """A job that ours would have started, or admitted, `seconds` before the live scheduler did."""

    time: float
    job: str
    seconds: float


@dataclass
class Comparison:
    """All of one run. `settle`: seconds without an event after which something counts as complete."""

    settle: float
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Differences by code."""
    pods: int = 0
    """Pods of jobs that both start."""
    same_nodes: int = 0
    """Those of them for which both choose the same node."""
    skipped: int = 0
    """Pods that were not compared, because the live scheduler starts jobs faster than ours can look at them."""
    earlier_jobs: int = 0
    earlier_seconds: float = 0.0
    differences: deque[Difference] = field(default_factory=lambda: deque(maxlen=KEPT))
    earlier: deque[Earlier] = field(default_factory=lambda: deque(maxlen=KEPT))
    waiting: dict[str, float] = field(default_factory=dict)
    """Jobs that ours would start now, and since when."""
    missed: set[str] = field(default_factory=set)
    """Those of them that count as ours-only."""

    @property
    def agreement(self) -> float | None:
        """The part of jobs that both start, 0 to 1; None when nothing was compared."""
        total = self.outcomes.total()
        return self.outcomes["same"] / total if total else None

    @property
    def node_agreement(self) -> float | None:
        """The part of pods that both put on the same node, 0 to 1; None when nothing was compared."""
        return self.same_nodes / self.pods if self.pods else None

    def decided(self, jobs: Set[str], unclear: Callable[[str], bool], now: float) -> None:
        """A cycle of ours starts or admits these jobs. `unclear`: it could not decide about a job."""
        for uid in [uid for uid in self.waiting if uid not in jobs and not unclear(uid)]:
            del self.waiting[uid]
            self.missed.discard(uid)
        for uid in jobs:
            self.waiting.setdefault(uid, now)

    def evaluated(self, job: str, first: float, pods: int, verdict: Verdict) -> float:
        """The live scheduler has started pods of a job at `first`. Returns by how many seconds ours is earlier."""
        since = self.waiting.pop(job, first)
        seconds = first - since
        if seconds >= self.settle:
            self.earlier_jobs += 1
            self.earlier_seconds += seconds
            self.earlier.append(Earlier(first, job, seconds))
        else:
            seconds = 0.0
        if job in self.missed:
            self.missed.discard(job)  # it was counted when the live scheduler did not start it
            return seconds
        if verdict.started:
            self.outcomes["same"] += 1
            self.pods += pods
            self.same_nodes += verdict.same_nodes
        else:
            self._differ(Difference(first, job, "live-only", verdict.code, verdict.why))
        return seconds

    def overdue(self, now: float, last_bind: float, arrived: Mapping[str, float]) -> list[str]:
        """Jobs that the live scheduler should have started by now. `arrived`: when something came for them."""
        quiet = last_bind + self.settle <= now
        limit = now - self.settle * (1 if quiet else PATIENCE)
        return [
            uid
            for uid, since in self.waiting.items()
            if uid not in self.missed and max(since, arrived.get(uid, since)) <= limit
        ]

    def miss(self, job: str, why: str) -> None:
        """A job that is overdue is a difference. `why`: what the live scheduler states about it."""
        self.missed.add(job)
        self._differ(Difference(self.waiting[job], job, "ours-only", LIVE_WAITS, why))

    def _differ(self, difference: Difference) -> None:
        self.outcomes[difference.outcome] += 1
        self.reasons[difference.code] += 1
        self.differences.append(difference)
