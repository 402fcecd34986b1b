"""The reservations of a session, and the filter that keeps held nodes free for them.

A pod may use a held node if its job is expected to end before the reservation starts, or if it fits beside: on what is
expected to be free on the node at that time and is not reserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.advance.advance_book import held_in_advance, without_advance
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.network.job_domains import domains_of_job
from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers, Reserved, earliest_start
from volcano_py.scheduler.framework.reservations.expected_ends import (
    Estimates,
    ExpectedEnds,
    ends_of_job,
    expected_ends,
    limit_in,
)
from volcano_py.scheduler.framework.reservations.first_jobs import FirstJobsRule
from volcano_py.scheduler.framework.reservations.gang_members import members_of
from volcano_py.scheduler.framework.reservations.largest_share import largest_share
from volcano_py.scheduler.framework.reservations.plans import KeptReservations, ReservationPlan
from volcano_py.scheduler.framework.reservations.queue_headroom import lacking_in_queues
from volcano_py.scheduler.framework.reservations.running_pods import running_pods
from volcano_py.scheduler.framework.reservations.trial import first_accepted
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue_parents import path_of
from volcano_py.scheduler.model.resource import EPS

Floats = NDArray[np.float64]


class Holder:
    """Where the plugin leaves its book for the action."""

    def __init__(self) -> None:
        self.book: Book | None = None


def book_of(session: Session) -> Book | None:
    """The reservations of a session; None: the plugin is not configured."""
    return session.shared(Holder, Holder).book


class Book:
    """A DOMAIN filter: what it rejects depends on the reservations and on what the session has placed."""

    name = "Reservation"
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(
        self,
        session: Session,
        first: list[SessionJob],
        most: int,
        estimates: Estimates,
        of_queue: float = 1.0,
        rule: FirstJobsRule | None = None,
    ) -> None:
        self.first = first
        """The jobs that start before the others, in their order."""
        self.most = most
        """For how many of these nodes are held at the same time."""
        self.of_queue = of_queue
        """The largest share of the cluster that is held for the jobs of one queue; 1: they have no limit."""
        self.planned = 0
        """For how many jobs a time and nodes were looked for."""
        self.rule = rule
        """From when on nodes are held for a job; None: at once."""
        self.later: dict[str, float] = {}
        """By job: from when on nodes are held for it, as far as is known now."""
        self.never: set[str] = set()
        """The jobs for which there is no time at which they fit, by the limits of what runs."""
        self._queue_shares: dict[str, float] = {}
        self.reserved: list[Reserved] = []
        self.plans: dict[str, ReservationPlan] = {}
        """By job."""
        self.reasons: list[Reason] = []
        self._session = session
        self._estimates = estimates
        self._plans = session.cluster.keep(KeptReservations).plans
        self._ends: ExpectedEnds | None = None
        self._merged: ExpectedEnds | None = None
        """With what the session has placed."""
        self._of_limit: dict[str, tuple[Floats, Floats]] = {}
        """By queue: the ends of its pods and those below it, and what they have freed then; until a task is moved."""
        self._starts = np.zeros(0)
        self._of = np.zeros(0, dtype=np.intp)
        """The nodes of all reservations, one after another: the index of the reservation,"""
        self._columns = np.zeros(0, dtype=np.intp)
        """the node,"""
        self._beside = np.zeros((len(session.table.rows), 0))
        """and what is free there when it starts beside what is idle now, without what it takes."""
        self._open = False
        self._new: dict[str, tuple[int, Floats, float]] = {}
        """What the session has placed, by task: node, amounts, expected end."""
        self._job_of: dict[str, str] = {}
        """The jobs of these tasks."""
        self._of_job: dict[str, dict[str, float]] = {}
        """The expected ends of the running pods of a job."""

    # ---- as a filter ---------------------------------------------------------------------------------------

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        codes = np.zeros(len(self._session.table), dtype=np.int32)
        if not self.reserved or self._open:
            return codes
        counts = (self._starts < self._end_of(task)) & self._others(task.job)
        if not counts.any():
            return codes
        rows = task.spec_class.checked_rows(self._session.table)
        needs = task.spec_class.vector(self._session.table)
        numbers, at = self._session.numbers, np.ix_(np.array(rows, dtype=np.intp), self._columns)
        free = numbers.idle[at] - numbers.pipelined[at] + self._beside[rows]
        short = (free + EPS < needs[rows][:, None]).any(axis=0) & counts[self._of]
        found = np.flatnonzero(short)[::-1]  # of several reservations of a node, the first is the reason
        codes[self._columns[found]] = self._of[found] + 1
        return codes

    def _others(self, job: str) -> NDArray[np.bool_]:
        """Which reservations are not of this job."""
        return np.array([held.job != job for held in self.reserved], dtype=bool)

    def placed(self, task: Task, node: int) -> str | None:
        """The session has placed a task: if it ends before a reservation starts, its capacity is free by then."""
        if self._open:
            return None
        self._new[task.key] = node, task.spec_class.vector(self._session.table), self._end_of(task)
        self._job_of[task.key] = task.job
        self._merged = None
        self._of_limit.clear()
        self._count(task, +1)
        return None

    def removed(self, task: Task, node: int) -> None:
        """The session has undone a placement, or evicts a task."""
        if task.key in self._new and not self._open:
            self._count(task, -1)
            del self._new[task.key]
            self._merged = None
            self._of_limit.clear()

    def _count(self, task: Task, sign: int) -> None:
        node, amounts, end = self._new[task.key]
        if not self.reserved:
            return
        counts = (end <= self._starts) & self._others(task.job)
        here = np.flatnonzero((self._columns == node) & counts[self._of])
        self._beside[:, here] += sign * amounts[:, None]

    def _free(self) -> Floats:
        """What is idle now and not held for a nominated pod; what is being released counts at its end, which is now."""
        numbers = self._session.numbers
        return numbers.idle - numbers.pipelined

    def _end_of(self, task: Task) -> float:
        limit = limit_in(self._session, task.job, self._estimates)
        return inf if limit is None else self._session.now + limit

    # ---- reserving -----------------------------------------------------------------------------------------

    def reserve(self, job: SessionJob) -> Reserved | None:
        """Hold nodes for a gang from the earliest time on at which it can start; None: there is none, or the job has
        not waited long enough for it."""
        session = self._session
        with self._on_trial():
            gang = members_of(session, job, self._ends_now())
        others = [*self.reserved, *held_in_advance(session, [members.tasks[0] for members in gang])]
        share = self._queue_shares.get(job.queue, 0.0) + self._share(gang)
        if not gang or (self.of_queue < 1 and share > self.of_queue + EPS):
            return None
        limit = limit_in(session, job.uid, self._estimates)
        after, domains = self._permitted_at(job, gang), domains_of_job(session, job)
        if after is None or domains == []:
            self.never.add(job.uid)
            return None
        plan = ReservationPlan(
            None,
            session.now,
            self._ends_now(),
            self._free(),
            gang,
            limit,
            domains or [],
            after,
            others,
        )
        self.planned += 1
        known = self._plans.get(job.uid)
        if known is not None and known.holds(session.now, plan):
            plan = known
        else:
            near = known.reserved.start if known is not None and known.reserved is not None else None
            computed_from = session.now, plan.idle, plan.ends, others, plan.domains, near, after
            find = partial(earliest_start, job.uid, gang, limit, *computed_from)
            plan.reserved = first_accepted(session, gang, find, self._ended, self._on_trial)
        found = plan.reserved
        if found is None:
            self.never.add(job.uid)
            return None
        self.plans[job.uid] = plan
        since = -inf if self.rule is None else self.rule.held_from(job.created, found.start)
        if session.now < since:
            self.later[job.uid] = since
            session.wake_at(since)
            return None
        self._queue_shares[job.queue] = share
        # without the time, which would change what is written about other jobs whenever it moves
        self.reasons.append(Reason(f"node(s) were reserved for {job.uid}", FitCode.UNSCHEDULABLE))
        beside = plan.ends.freed(found.start, plan.idle.shape[1])[:, found.nodes] - found.amounts[:, found.nodes]
        for other in self.reserved:
            if other.until > found.start and other.start <= found.start:
                beside -= other.amounts[:, found.nodes]
        self._columns = np.concatenate([self._columns, found.nodes])
        self._of = np.concatenate([self._of, np.full(len(found.nodes), len(self.reserved), dtype=np.intp)])
        self._starts = np.append(self._starts, found.start)
        self._beside = np.concatenate([self._beside, beside], axis=1)
        self.reserved.append(found)
        return found

    def _permitted_at(self, job: SessionJob, gang: list[GangMembers]) -> float | None:
        """From when on the limits of the queue and of those above it permit the gang, by the expected ends of the pods
        that count for each limit; None: never."""
        session = self._session
        after = session.now
        for limit, lacking in lacking_in_queues(session, session.queues[job.queue], gang):
            times, freed = self._ends_in(limit)
            enough = np.flatnonzero((freed + EPS >= lacking[:, None]).all(axis=0))
            if not len(enough) or times[enough[0]] == inf:
                return None
            after = max(after, float(times[enough[0]]))
        return after

    def _ends_in(self, queue: str) -> tuple[Floats, Floats]:
        """The expected ends of the pods of a queue and those below it, in order, and what they have freed by then."""
        if (known := self._of_limit.get(queue)) is not None:
            return known
        session, pods = self._session, running_pods(self._session.cluster)
        jobs, parents = session.cluster.jobs, session.queue_parents
        below = {name for name in session.queues if queue in path_of(name, parents)} | {queue}
        own = np.array(
            [p for uid, places in pods.of.items() if jobs[uid].queue in below for p in places], dtype=np.intp
        )
        new = [of for key, of in self._new.items() if jobs[self._job_of[key]].queue in below]
        times = np.concatenate([self._ends_now().by_place[own], [end for _, _, end in new]])
        amounts = np.concatenate([pods.amounts[:, own], *(of[:, None] for _, of, _ in new)], axis=1)
        order = np.argsort(times, kind="stable")
        found = self._of_limit[queue] = times[order], np.cumsum(amounts[:, order], axis=1)
        return found

    def _share(self, gang: list[GangMembers]) -> float:
        """The share of the cluster that a gang needs, by its largest resource."""
        none = np.zeros(len(self._session.table.rows))
        return largest_share(self._session, sum((members.needs * members.count for members in gang), none))

    def _ends_now(self) -> ExpectedEnds:
        if self._ends is None:
            self._ends = expected_ends(self._session, self._estimates)
        if self._merged is None:
            self._merged = self._ends.with_pods(self._new.values())
        return self._merged

    def _ended(self, node: int, time: float) -> list[Task]:
        """The pods of a node that are expected to have ended by a time."""
        session, found = self._session, []
        for task in session.on_node(node):
            if session.status(task) in (st.BOUND, st.RUNNING) and self._end_of_running(task) <= time:
                found.append(task)
        return found

    def _end_of_running(self, task: Task) -> float:
        known = self._of_job.get(task.job)
        if known is None:
            known = self._of_job[task.job] = ends_of_job(self._session.cluster, task.job, self._ends_now())
        return known.get(task.key, inf)

    @contextmanager
    def _on_trial(self) -> Iterator[None]:
        """Accept all nodes, and do not count moves."""
        self._open = True
        try:
            with without_advance(self._session):
                yield
        finally:
            self._open = False
