"""Which waiting jobs come before the others, in which order, and from when on nodes may be held for one of them.

Not in Volcano. A job is large from a share of the cluster on. Pure rules over the jobs of a session; the plugin
`reservation` reads them from its configuration.
"""

from __future__ import annotations

from math import inf
from typing import Literal

from msgspec import Struct

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, limit_in
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.counted_resources import CountedResources, share_of
from volcano_py.scheduler.model.jobs import status as st

SHORTEST = 60.0
"""Shorter limits count as this one in orders, in seconds."""


class FirstJobsRule(Struct, frozen=True):
    """Times are in seconds, sizes are shares of the cluster."""

    patience: float
    """How long a job waits before it comes first."""
    large: float
    """From which size on a job is large."""
    large_patience: float
    """The patience of a job that is just large; one that is twice as large has half of it, and so on."""
    oldest_first: float
    """Jobs that have waited so long come in the order of their age, whatever their size."""
    large_order: Literal["size", "slowdown"]
    """Of large jobs: the time waited times the size, or the time waited divided by a power of the limit; the largest
    first."""
    limit_exponent: float
    """This power."""
    hold_ratio: float
    """Nodes are held for a job once it has waited this many times as long as they would be held; 0: at once."""

    def patience_of(self, size: float) -> float:
        """The patience of a job of a size."""
        if size < self.large:
            return self.patience
        return min(self.patience, self.large_patience * self.large / size)

    def held_from(self, created: float, start: float) -> float:
        """From when on nodes may be held for a job that can start at `start`; in time it waits longer, and they would
        be held for less."""
        if not self.hold_ratio:
            return -inf
        return min(created + self.oldest_first, (created + self.hold_ratio * start) / (1 + self.hold_ratio))


def first_jobs(session: Session, rule: FirstJobsRule, estimates: Estimates) -> list[SessionJob]:
    """The jobs whose patience has ended, in their order."""
    found: list[tuple[tuple[int, float, float, str], SessionJob]] = []
    sizes = sizes_of_jobs(session)
    for job in session.jobs.active():
        if not job.counts[st.PENDING] or job.ready_num >= max(1, job.min_available):
            continue
        waited, size = session.now - job.created, sizes[job.uid]
        patience = rule.patience_of(size)
        if waited < patience:
            session.wake_at(job.created + patience)
            continue
        if waited >= rule.oldest_first:
            rank = (0, 0.0)
        elif size >= rule.large:
            session.wake_at(job.created + rule.oldest_first)
            limit = limit_in(session, job.uid, estimates) if rule.large_order == "slowdown" else None
            if rule.large_order == "slowdown":
                rank = (1, -waited / (inf if limit is None else max(limit, SHORTEST) ** rule.limit_exponent))
            else:
                rank = (1, -waited * size)
        else:
            rank = (2, 0.0)
        found.append(((*rank, job.created, job.uid), job))
    return [job for _, job in sorted(found, key=lambda pair: pair[0])]


def sizes_of_jobs(session: Session) -> dict[str, float]:
    """The share of the cluster that each job requests, by its largest resource; updated for the jobs that changed."""
    counted = CountedResources.of(session.total)

    def apply(state: dict[str, float], cluster: Cluster, changed: set[str]) -> None:
        for uid in changed:
            job = cluster.jobs.get(uid)
            if job is None:
                state.pop(uid, None)
            else:
                state[uid] = share_of(job.total_request, counted)

    def build(cluster: Cluster) -> dict[str, float]:
        state: dict[str, float] = {}
        apply(state, cluster, set(cluster.jobs))
        return state

    return state_of(session.cluster, "sizes of jobs", counted, build, apply, session.cluster.check_states)
