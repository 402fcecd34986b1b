"""reservation: which waiting jobs start before the others, with nodes that are held for them. Not in Volcano.

Jobs have patience, the larger the less, and until it ends nothing is held for them: while the cluster has room, they
start without it. Then a job comes first: those that have waited for `oldest-first` in the order of their age; after
these the large ones by `large-order`, then the rest by age. Action `reserve` starts them in this order and
reserves nodes for the first `reservations` that do not fit. Among the other jobs, short or small ones are placed before
the others for a while. `framework.reservations.first_jobs` has the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt
from typing import Any, Literal

from msgspec import field

from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.book import Book, Holder
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, limit_in, unusable_in
from volcano_py.scheduler.framework.reservations.first_jobs import (
    SHORTEST,
    FirstJobsRule,
    first_jobs,
    sizes_of_jobs,
)
from volcano_py.scheduler.framework.reservations.history import History
from volcano_py.scheduler.framework.reservations.learned_run_times import OBSERVATIONS, LearnedRunTimes
from volcano_py.scheduler.framework.session import Session

_MOST = 64


class Reservation(Plugin):
    """See `Arguments`."""

    name = "reservation"

    class Arguments(PluginArguments):
        reservations: int = 1
        """For how many jobs nodes are held at the same time."""
        queue_share: float = field(default=1.0, name="queue-share")
        """The largest share of the cluster that is held for the jobs of one queue, by its largest resource; 1: no
        limit."""
        patience: str = "48h"
        """How long a job waits before nodes are held for it."""
        large: float = 0.125
        """The share of the cluster from which on a job is large, by its largest resource."""
        large_patience: str = field(default="12h", name="large-patience")
        """The patience of a job that is just large; one that is twice as large has half of it, and so on."""
        large_order: Literal["size", "slowdown"] = field(default="size", name="large-order")
        """Which large jobs come first: size, those with the most time waited times size; slowdown, those that have
        waited longest for their limit."""
        limit_exponent: float = field(default=1.0, name="limit-exponent")
        """For slowdown: the time waited is divided by this power of the limit; 0: the limit does not count."""
        hold_ratio: float = field(default=0.0, name="hold-ratio")
        """Nodes are held for a job once it has waited this many times as long as they would be held; 0: at once."""
        oldest_first: str = field(default="36h", name="oldest-first")
        """Jobs that have waited so long come in the order of their age, whatever their size."""
        backfill_order: Literal["short", "work"] = field(default="short", name="backfill-order")
        """Which of the other jobs are placed first: short, those with at most the limit `short`; work, those that
        need least, by their size times the square root of their limit."""
        short: str = "30m"
        """The limit of short jobs; 0s: none."""
        short_until: str = field(default="12h", name="short-until")
        """How long another job waits before it is placed in its usual order again."""
        default_run_time: str = field(default="", name="default-run-time")
        """The limit of jobs that state none, if nothing is learned; empty: nothing is expected of them."""
        learn: bool = False
        """Whether the run times of jobs that have succeeded count for similar jobs that state no limit."""
        quantile: float = 0.9
        """Which quantile of these run times is expected."""
        observations: int = 5
        """How many similar jobs must have ended; with fewer, those of the owner or of the queue count."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        patience, large_patience = self.duration("patience"), self.duration("large_patience")
        oldest_first = self.duration("oldest_first")
        self.short, self.short_until = self.duration("short"), self.duration("short_until")
        self.default_run_time = self.optional_duration(
            "default_run_time", "nothing is expected of jobs without a limit", above_zero=True
        )
        self.most = read.reservations
        if not 0 <= self.most <= _MOST:
            self.warn(f"argument reservations is {self.most}, and must be from 0 to {_MOST}; 1 is used")
            self.most = 1
        large, ratio = read.large, read.hold_ratio
        if not 0 < large < inf:
            self.warn(f"argument large is {large}, and must be above 0; 0.125 is used")
            large = 0.125
        if not 0 <= ratio < inf:
            self.warn(f"argument hold-ratio is {ratio}, and must be at least 0; 0 is used")
            ratio = 0.0
        exponent = read.limit_exponent
        if not 0 <= exponent <= 2:
            self.warn(f"argument limit-exponent is {exponent}, and must be from 0 to 2; 1 is used")
            exponent = 1.0
        self.rule = FirstJobsRule(patience, large, large_patience, oldest_first, read.large_order, exponent, ratio)
        self.queue_share = read.queue_share
        if not 0 < self.queue_share <= 1:
            self.warn(f"argument queue-share is {self.queue_share}, and must be above 0 and at most 1; 1 is used")
            self.queue_share = 1.0
        self.quantile, self.least = read.quantile, read.observations
        if not 0 < self.quantile <= 1:
            self.warn(f"argument quantile is {self.quantile}, and must be above 0 and at most 1; 0.9 is used")
            self.quantile = 0.9
        if not 1 <= self.least <= OBSERVATIONS:
            self.warn(f"argument observations is {self.least}, and must be from 1 to {OBSERVATIONS}; 5 is used")
            self.least = 5

    def on_session_open(self, session: Session) -> None:
        self._estimates = Estimates(self.default_run_time, self._learned(session) if self.arguments.learn else None)
        reserves = "reserve" in session.configuration.actions
        first = first_jobs(session, self.rule, self._estimates) if self.most and reserves else []
        book = Book(session, first, self.most if reserves else 0, self._estimates, self.queue_share, self.rule)
        session.shared(Holder, Holder).book = book
        if reserves and self.arguments.backfill_order == "work":
            sizes = sizes_of_jobs(session)
            session.add_job_order(lambda job: self._work(session, job, sizes))
        elif reserves and self.short:
            session.add_job_order(lambda job: int(self._is_long(session, job)))
        session.add_job_enqueueable(lambda job: self._report_limit(session, job))
        if first:  # otherwise nothing is held in this session
            session.add_filters(book)
            session.add_event_handler(book.placed, book.removed)

    def _report_limit(self, session: Session, job: SessionJob) -> Vote:
        """An Event for a limit that is not usable, before the job is admitted."""
        if problem := unusable_in(session, job.uid):
            session.note(job, "Warning", "InvalidMaxRunTime", f"{problem}; the job has no limit")
        return Vote.ABSTAIN

    def _learned(self, session: Session) -> LearnedRunTimes:
        """What is known about the run times of jobs, with those that have ended since the last session."""
        known = session.cluster.keep(LearnedRunTimes)
        stored = session.cluster.keep(History).take(self.name, known)
        if stored is not None and (problem := known.load(stored)):
            self.warn(f"the stored run times are not valid, and none are known: {problem}")
        known.set(self.quantile, self.least)
        known.observe(session.cluster, session.now)
        if known.errors:
            median = sorted(known.errors)[len(known.errors) // 2]
            session.gauges.append(("expected_run_time_error_ratio", {}, median))
        return known

    def _is_long(self, session: Session, job: SessionJob) -> bool:
        """Whether short jobs are placed before it."""
        if session.now - job.created >= self.short_until or not job.tasks:
            return False
        limit = limit_in(session, job.uid, self._estimates)
        return limit is None or limit > self.short

    def _work(self, session: Session, job: SessionJob, sizes: Mapping[str, float]) -> float:
        """What the job needs, in the order of the backfill; −1: it has waited long, and comes in its usual order."""
        if session.now - job.created >= self.short_until or not job.tasks:
            return -1.0
        limit = limit_in(session, job.uid, self._estimates)
        return inf if limit is None else sizes[job.uid] * sqrt(max(limit, SHORTEST))
