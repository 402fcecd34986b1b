"""reservation: which waiting jobs start before the others, with nodes that are held for them. Not in Volcano.

Jobs have patience, the larger the less, and until it ends nothing is held for them: while the cluster has room, they
start without it. Then a job comes first: those that have waited for `oldest-first` in the order of their age; after
these the large ones by time waited times size, then the rest by age. Action `reserve` starts them in this order and
reserves nodes for the first `reservations` that do not fit. Among the other jobs, short ones are placed before long
ones for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from msgspec import field

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.book import Book, Holder
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, limit_in
from volcano_py.scheduler.framework.reservations.history import History
from volcano_py.scheduler.framework.reservations.learned_run_times import OBSERVATIONS, LearnedRunTimes
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st

_MOST = 64
_HOUR = 3600.0


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
        oldest_first: str = field(default="36h", name="oldest-first")
        """Jobs that have waited so long come in the order of their age, whatever their size."""
        short: str = "30m"
        """Among the other jobs, those with at most this limit are placed before those with longer ones; 0s: none."""
        short_until: str = field(default="12h", name="short-until")
        """How long a job with a longer limit waits before it is placed in its usual order again."""
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
        self.patience = self._seconds("patience", read.patience, 48 * _HOUR)
        self.large_patience = self._seconds("large-patience", read.large_patience, 12 * _HOUR)
        self.oldest_first = self._seconds("oldest-first", read.oldest_first, 36 * _HOUR)
        self.short = self._seconds("short", read.short, 0.5 * _HOUR)
        self.short_until = self._seconds("short-until", read.short_until, 12 * _HOUR)
        default = self._seconds("default-run-time", read.default_run_time, 0.0) if read.default_run_time else 0.0
        self.default_run_time = default or None
        self.most = read.reservations
        if not 0 <= self.most <= _MOST:
            self.warn(f"argument reservations is {self.most}, and must be from 0 to {_MOST}; 1 is used")
            self.most = 1
        self.large = read.large
        if not 0 < self.large < inf:
            self.warn(f"argument large is {self.large}, and must be above 0; 0.125 is used")
            self.large = 0.125

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
        first = self._first(session) if self.most and "reserve" in session.configuration.actions else []
        book = Book(session, first, self.most, self._estimates, self.queue_share)
        session.shared(Holder, Holder).book = book
        if self.short and "reserve" in session.configuration.actions:
            session.add_job_order(lambda job: int(self._is_long(session, job)))
        if first:  # otherwise nothing is held in this session
            session.add_filters(book)
            session.add_event_handler(book.placed, book.removed)

    def _first(self, session: Session) -> list[SessionJob]:
        """The jobs whose patience has ended, in their order."""
        found: list[tuple[tuple[int, float, float, str], SessionJob]] = []
        sizes = _sizes(session)
        for job in session.jobs.active():
            if not job.counts[st.PENDING] or job.ready_num >= max(1, job.min_available):
                continue
            waited, size = session.now - job.created, sizes[job.uid]
            is_large = size >= self.large
            patience = self.large_patience * self.large / size if is_large else self.patience
            if waited < min(patience, self.patience):
                session.wake_at(job.created + min(patience, self.patience))
                continue
            if waited >= self.oldest_first:
                found.append(((0, 0.0, job.created, job.uid), job))
            elif is_large:
                session.wake_at(job.created + self.oldest_first)
                found.append(((1, -waited * size, job.created, job.uid), job))
            else:
                found.append(((2, 0.0, job.created, job.uid), job))
        return [job for _, job in sorted(found, key=lambda pair: pair[0])]

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

    def _seconds(self, name: str, text: str, default: float) -> float:
        try:
            seconds = parse_duration(text)
            if seconds >= 0:
                return seconds
            problem = f"{text} is negative"
        except ValueError as e:
            problem = str(e)
        self.warn(f"argument {name}: {problem}; {default / _HOUR:g}h is used")
        return default


def _sizes(session: Session) -> dict[str, float]:
    """The share of the cluster that each job requests, by its largest resource; updated for the jobs that changed."""
    whole = [(name, amount) for name in session.total.names() if (amount := session.total[name]) > 0]

    def apply(state: dict[str, float], cluster: Cluster, changed: set[str]) -> None:
        for uid in changed:
            job = cluster.jobs.get(uid)
            if job is None:
                state.pop(uid, None)
            else:
                state[uid] = max((job.total_request[name] / amount for name, amount in whole), default=0.0)

    def build(cluster: Cluster) -> dict[str, float]:
        state: dict[str, float] = {}
        apply(state, cluster, set(cluster.jobs))
        return state

    return state_of(session.cluster, "sizes of jobs", tuple(whole), build, apply, session.cluster.check_states)
