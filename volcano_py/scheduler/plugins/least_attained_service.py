"""least-attained-service: jobs that have used least come first, without any estimate of run times. Not in Volcano.

Tiresias is the model. The service of a job is the share of the cluster that it has held, by its largest resource, times
seconds; it stays when pods are evicted. Jobs are compared by levels, each twice as large as the one before, and within
a level by the next order, so that jobs that have used about the same do not pass each other all the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log2
from typing import Any

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.running_pods import start_of
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.counted_resources import CountedResources, share_of

LONGEST_GAP = 600.0
"""Seconds between two sessions for which allocations count."""


@dataclass
class Attained:
    """The state between sessions, by job."""

    service: dict[str, float] = field(default_factory=dict)
    """Seconds of the whole cluster."""
    held: dict[str, float] = field(default_factory=dict)
    at: float | None = None

    def advance(self, now: float, held: Mapping[str, float]) -> None:
        """Count what was held until now, and continue with what is held now."""
        if self.at is not None and now > self.at:
            gained = min(now - self.at, LONGEST_GAP)
            for job, share in self.held.items():
                self.service[job] = self.service.get(job, 0.0) + share * gained
        self.at = now
        self.held = dict(held)

    def forget(self, known: Mapping[str, object]) -> None:
        """Drop the jobs that are gone."""
        for job in self.service.keys() - known.keys():
            del self.service[job]


class LeastAttainedService(Plugin):
    """See `Arguments`."""

    name = "least-attained-service"

    class Arguments(PluginArguments):
        level: str = "1m"
        """The first level: so much time of the whole cluster; each further level is twice as large."""
        resources: list[str] = []
        """The resources that count, such as nvidia.com/gpu; empty: all."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.level = self.duration("level", above_zero=True)

    def on_session_open(self, session: Session) -> None:
        self._counted = CountedResources.of(session.total, self.arguments.resources)
        attained, cluster = session.cluster.keep(Attained), session.cluster
        held = self._held(cluster)
        if attained.at is None:
            attained.service = {uid: self._since_start(cluster, uid, session.now) for uid in held}
        attained.advance(session.now, held)
        attained.forget(cluster.jobs)

        def key(job: SessionJob) -> int:
            return int(log2(1.0 + attained.service.get(job.uid, 0.0) / self.level))

        session.add_job_order(key)

    def _held(self, cluster: Cluster) -> dict[str, float]:
        """The share of the cluster that each job holds."""

        def apply(state: dict[str, float], cluster: Cluster, changed: set[str]) -> None:
            for uid in changed:
                job = cluster.jobs.get(uid)
                share = share_of(job.allocated, self._counted) if job is not None else 0.0
                if share > 0:
                    state[uid] = share
                else:
                    state.pop(uid, None)

        def build(cluster: Cluster) -> dict[str, float]:
            state: dict[str, float] = {}
            apply(state, cluster, set(cluster.jobs))
            return state

        return state_of(cluster, self.name, self._counted, build, apply, cluster.check_states)

    def _since_start(self, cluster: Cluster, uid: str, now: float) -> float:
        """After a restart: what the pods of a job that still run have used."""
        tasks = (t for t in cluster.jobs[uid].tasks.values() if t.takes_capacity)
        starts = ((t, start_of(t)) for t in tasks)
        return sum(
            share_of(t.request, self._counted) * max(0.0, now - start) for t, start in starts if -inf < start < inf
        )
