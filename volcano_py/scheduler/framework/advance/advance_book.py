"""The Reservations of a session, and the filter that keeps their nodes free for those who may use them. Not in Volcano.

A pod may not start on the nodes of a Reservation that it may not use if its job is expected to run into it: to end
after its start, and to start before its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.reservation import Reservation, ReservationStatus
from volcano_py.scheduler.framework.advance.window_nodes import nodes_of
from volcano_py.scheduler.framework.advance.windows import ReservedWindow, read_window, users_of
from volcano_py.scheduler.framework.reservations.earliest_start import Reserved
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, expected_ends, limit_in
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue_parents import path_of

KIND = Reservation().kind


@dataclass
class KeptWindows:
    """What a session leaves to the next one."""

    read: dict[str, tuple[Reservation, ReservedWindow | str]] = field(default_factory=dict)
    """By name: the object, and what it states or why it is invalid."""
    version: object = None
    columns: dict[str, list[int]] = field(default_factory=dict)
    """By name: the nodes, as columns of the node table."""
    nodes: dict[str, list[str]] = field(default_factory=dict)
    """By UID: the same as names, which stay when the table changes."""
    problems: dict[str, str] = field(default_factory=dict)
    """By name: what is wrong with the nodes."""
    held: dict[str, Reserved] = field(default_factory=dict)
    """By name: all of its nodes as a reservation for the plans of others."""
    on_nodes: dict[str, tuple[object, tuple[dict[str, str], int]]] = field(default_factory=dict)
    """By name: what is used there, and how many other pods run there, with what it was counted from."""
    statuses: dict[str, ReservationStatus] = field(default_factory=dict)
    """By name: what is to be written; empty while the plugin is not configured."""


class AdvanceBook:
    """A DOMAIN filter: what it rejects depends on the time and on the job."""

    name = "AdvanceReservation"
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, session: Session, estimates: Estimates) -> None:
        self._session = session
        self._estimates = estimates
        kept = self._kept = session.cluster.keep(KeptWindows)
        self.windows = _read(session.cluster, kept)
        """Those that are valid and have not ended, in the order of their creation."""
        self.live = [w for w in self.windows if session.now < w.end]
        if self.live:
            self._choose_nodes()
        self.reasons = [
            Reason(
                f"node(s) were reserved by Reservation {w.name} {w.period} for {users_of(w.spec)}", FitCode.UNRESOLVABLE
            )
            for w in self.live
        ]
        self._is_open = False
        self._codes: dict[tuple[int, ...], Codes] = {}
        self._queues: dict[str, list[str]] = {}
        self._labels = sorted(set().union(*(w.labels for w in self.live)))
        self._against: dict[tuple[str, ...], tuple[int, ...]] = {}
        """By job, and the values of these labels."""
        for window in self.windows:
            session.wake_at(window.start)
            session.wake_at(window.end)

    # ---- as a filter -----------------------------------------------------------------------------------------

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        against = () if self._is_open else self.against(task)
        found = self._codes.get(against)
        if found is None:
            found = np.zeros(len(self._session.table), dtype=np.int32)
            for place in reversed(against):  # of several Reservations of a node, the earliest is the reason
                found[self._kept.columns[self.live[place].name]] = place + 1
            self._codes[against] = found
        return found

    def against(self, task: Task) -> tuple[int, ...]:
        """The Reservations that the task would run into and may not use, as places in `live`."""
        key = task.job, *(task.labels.get(name, "\0") for name in self._labels)
        found = self._against.get(key)
        if found is None:
            limit = limit_in(self._session, task.job, self._estimates)
            end = inf if limit is None else self._session.now + limit
            places = (place for place, w in enumerate(self.live) if w.start < end)
            found = tuple(place for place in places if not self.may_use(self.live[place], task.job, task.labels))
            self._against[key] = found
        return found

    def may_use(self, window: ReservedWindow, uid: str, labels: dict[str, str]) -> bool:
        """Whether a pod of a job may use the nodes of a Reservation."""
        job = self._session.cluster.jobs.get(uid)
        return job is not None and window.permits(job, self.queues_of(job), labels)

    def queues_of(self, job: Job) -> list[str]:
        """The job's queue and those above it."""
        found = self._queues.get(job.queue)
        if found is None:
            found = self._queues[job.queue] = path_of(job.queue, self._session.queue_parents)
        return found

    @contextmanager
    def without(self) -> Iterator[None]:
        """Accept all nodes, for a computation that has the times."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False

    # ---- for plans --------------------------------------------------------------------------------------------

    def held_from(self, task: Task) -> list[Reserved]:
        """The Reservations that a pod may not use, as capacity that others hold."""
        return [
            self._held(w)
            for w in self.live
            if self._kept.columns[w.name] and not self.may_use(w, task.job, task.labels)
        ]

    def _held(self, window: ReservedWindow) -> Reserved:
        columns = self._kept.columns[window.name]
        found = self._kept.held.get(window.name)
        if found is None:
            allocatable = self._session.numbers.allocatable
            amounts = np.zeros_like(allocatable)
            amounts[:, columns] = allocatable[:, columns]
            found = Reserved(f"Reservation {window.name}", window.start, window.end, amounts)
            self._kept.held[window.name] = found
        return found

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def nodes(self, window: ReservedWindow) -> list[int]:
        """The columns of its nodes."""
        return self._kept.columns.get(window.name, [])

    def problem(self, window: ReservedWindow) -> str:
        """What is wrong with its nodes; empty: nothing."""
        return self._kept.problems.get(window.name, "")

    def _choose_nodes(self) -> None:
        session, kept = self._session, self._kept
        table = session.table
        version = ([id(w) for w in self.live], table.generation, table.total_generation, len(table.rows))
        if kept.version == version and not any(w.counts and kept.problems[w.name] for w in self.live):
            return
        kept.version, kept.held = version, {}
        until = self._ends() if any(w.counts for w in self.live) else np.zeros(len(table))
        earlier: list[ReservedWindow] = []
        # those that name all of their nodes first: the others can have different ones
        for window in sorted(self.live, key=lambda w: w.counts):
            taken = np.zeros(len(table), dtype=bool)
            at_once = [other for other in earlier if other.overlaps(window)]
            for other in at_once:
                taken[kept.columns[other.name]] = True
            before = kept.nodes.get(window.uid, window.known)
            columns, problem = nodes_of(window, table, session.numbers.allocatable, taken, until, before)
            both = [o.name for o in at_once if set(kept.columns[o.name]) & set(columns)]
            if both:
                problem = f"it overlaps Reservation {both[0]}, and only who may use both may use the nodes of both"
            kept.columns[window.name], kept.problems[window.name] = columns, problem
            kept.nodes[window.uid] = [table.names[i] for i in columns]
            earlier.append(window)

    def _ends(self) -> NDArray[np.float64]:
        """When all that runs on each node is expected to end."""
        return expected_ends(self._session, self._estimates).last(len(self._session.table))


def _read(cluster: Cluster, kept: KeptWindows) -> list[ReservedWindow]:
    """The valid Reservations, in the order of their creation."""
    objects: dict[str, Reservation] = cluster.others.get(KIND, {})
    for name in kept.read.keys() - objects.keys():
        _forget(kept, name)
    for name, found in objects.items():
        known = kept.read.get(name)
        if known is not None and known[0] is found:
            continue
        try:
            read: ReservedWindow | str = read_window(found)
        except ValueError as error:
            read = str(error)
        if known is not None and _equal(known[1], read):
            read = known[1]  # only its status has changed
        elif isinstance(read, str):
            _forget(kept, name)
        kept.version = kept.version if known is not None and read is known[1] else None
        kept.read[name] = found, read
    valid = [(o.metadata.creation_timestamp or "", name, w) for name, (o, w) in kept.read.items()]
    return [w for _, _, w in sorted(valid, key=lambda of: of[:2]) if isinstance(w, ReservedWindow)]


def _equal(known: ReservedWindow | str, read: ReservedWindow | str) -> bool:
    if isinstance(known, str) or isinstance(read, str):
        return known == read
    return (known.uid, known.spec) == (read.uid, read.spec)


def _forget(kept: KeptWindows, name: str) -> None:
    found = kept.read.pop(name, None)
    if found is not None:
        kept.nodes.pop(found[0].metadata.uid, None)
    for of in (kept.columns, kept.problems, kept.held, kept.on_nodes, kept.statuses):
        of.pop(name, None)
    kept.version = None


class AdvanceHolder:
    """Where the plugin leaves its book."""

    def __init__(self) -> None:
        self.book: AdvanceBook | None = None


def advance_book_of(session: Session) -> AdvanceBook | None:
    """The Reservations of a session; None: the plugin is not configured."""
    return session.shared(AdvanceHolder, AdvanceHolder).book


@contextmanager
def without_advance(session: Session) -> Iterator[None]:
    """Accept the nodes of Reservations, for a plan that counts them as held with `held_in_advance`."""
    book = advance_book_of(session)
    if book is None:
        yield
        return
    with book.without():
        yield


def held_in_advance(session: Session, tasks: Sequence[Task]) -> list[Reserved]:
    """The Reservations that one of these pods may not use, as capacity that is held at its time."""
    book = advance_book_of(session)
    if book is None:
        return []
    found = {id(held): held for task in tasks for held in book.held_from(task)}
    return list(found.values())
