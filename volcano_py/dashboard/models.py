"""The page models of the watched cluster.

Viewers share them: each model is made at most once a second, and only when something has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from volcano_py.dashboard.evictions import Evictions, evictions
from volcano_py.dashboard.job_page import JobPage, job_page
from volcano_py.dashboard.jobs import Filter, JobList, JobRow, JobTable, count_states, job_list
from volcano_py.dashboard.native_groups import NativeJob, native_jobs, tree_rows
from volcano_py.dashboard.nodes import HeatMap, NodePage, NodeTable, heat_map, node_page, node_table
from volcano_py.dashboard.queues import QueuePage, queue_page
from volcano_py.dashboard.reservations import ReservationPage, reservation_page
from volcano_py.dashboard.shares import SharePage, Usage

if TYPE_CHECKING:
    from volcano_py.dashboard.watches import Watches

Manifest = dict[str, Any]
T = TypeVar("T")
PAUSE = 1.0
"""Seconds between two times that a model is made."""


class Models:
    """Page models of what is watched now."""

    def __init__(self, watches: Watches, clock: Callable[[], float] = time.monotonic) -> None:
        self._watches = watches
        self._clock = clock
        self._jobs = JobTable()
        self._made: dict[str, tuple[int, float, Any]] = {}
        self._oldest = 0

    @property
    def revision(self) -> int:
        """Grows with every change of an object."""
        return self._watches.revision

    def drawn(self, draw: Callable[[], T]) -> tuple[T, int]:
        """What a function makes of models, and the revision that it shows: that of the oldest model."""
        self._oldest = self._watches.revision
        return draw(), self._oldest

    def queues(self) -> QueuePage:
        """The tree of queues."""
        w = self._watches
        groups = self._groups()
        return self._fresh(
            "queues",
            lambda: queue_page(w.objects("queues").values(), list(groups.values()), w.objects("nodes").values()),
        )

    def jobs(self, chosen: Filter) -> JobList:
        """A page of jobs."""
        return job_list(self._job_rows().values(), chosen)

    def counts(self) -> dict[str, int]:
        """Jobs by state."""
        return self._fresh("counts", lambda: count_states(self._job_rows().values()))

    def job(self, key: str) -> JobPage | None:
        """The page of a job by `namespace/name`, of the Job or its PodGroup; None if there is none."""
        w = self._watches
        rows = self._job_rows()
        row = rows.get(key) or next((row for row in rows.values() if row.group == key), None)
        if row is None:
            return None
        pods = w.objects("pods").values() if w.may_list("pods") else None
        job = w.objects("jobs").get(row.key) if row.has_job else None
        native = self._native().get(row.group)
        group = self._groups().get(row.group)
        if native is None:
            return job_page(row, group, job, pods)
        page = job_page(row, group, job, pods, native.members)
        return page._replace(groups=tree_rows(native, w.objects("pods").values(), w.objects("nodes")))

    def heat_map(self, resource: str, contains: str) -> HeatMap:
        """The heat map of nodes."""
        return heat_map(self._node_table(), resource, contains)

    def node(self, name: str) -> NodePage | None:
        """The page of a node; None if there is none."""
        w = self._watches
        return node_page(self._node_table(), name, w.objects("pods").values() if w.may_list("pods") else None)

    def evictions(self) -> Evictions:
        """The recent evictions."""
        w = self._watches
        events = [*w.objects("evictions").values(), *w.objects("preemptions").values()]
        return self._fresh("evictions", lambda: evictions(events, w.objects("podgroups")))

    def reservations(self) -> ReservationPage:
        """Reservations, jobs for which nodes are held, and expected ends."""
        found = self._watches.objects("reservations").values()
        return self._fresh("reservations", lambda: reservation_page(found, self._job_rows().values()))

    def shares(self, usage: Usage) -> SharePage | None:
        """What queues and owners have used."""
        return usage.page(self._watches.objects("queues").values())

    def _native(self) -> dict[str, NativeJob]:
        w = self._watches
        groups, composites = w.objects("native"), w.objects("composites")
        if not groups and not composites:
            return {}
        return self._fresh("native", lambda: native_jobs(groups, composites, w.objects("pods").values()))

    def _groups(self) -> dict[str, Manifest]:
        """PodGroups of Volcano, and native gangs in their shape."""
        native = self._native()
        groups = self._watches.objects("podgroups")
        return groups | {key: found.manifest for key, found in native.items()} if native else groups

    def _job_rows(self) -> dict[str, JobRow]:
        def make() -> dict[str, JobRow]:
            self._jobs.update(self._groups(), self._watches.objects("jobs"))
            return self._jobs.rows

        return self._fresh("jobs", make)

    def _node_table(self) -> NodeTable:
        w = self._watches
        pods = w.objects("pods").values() if w.may_list("pods") else None
        return self._fresh(
            "nodes", lambda: node_table(w.objects("nodes").values(), pods, w.objects("hypernodes").values())
        )

    def _fresh(self, name: str, make: Callable[[], T]) -> T:
        known = self._made.get(name)
        now = self._clock()
        if known is not None and known[0] == self._watches.revision:
            return cast(T, known[2])
        if known is not None and now - known[1] < PAUSE:
            self._oldest = min(self._oldest, known[0])
            return cast(T, known[2])
        made = make()
        self._made[name] = (self._watches.revision, now, made)
        return made
