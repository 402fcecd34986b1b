"""What the jobs of each queue hold and request, kept between sessions.

Volcano: the queue sums of proportion and capacity.
"""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.resource import Resource, exceeded_part

_NOTHING = Resource()
"""What most jobs that wait hold; it is not changed."""


class QueueDemand:
    """What the jobs of one queue hold and request; every job counts once."""

    __slots__ = ("allocated", "elastic", "jobs", "request")

    def __init__(self) -> None:
        self.jobs = 0
        self.allocated = Resource()
        self.request = Resource()
        self.elastic = Resource()

    def count(self, part: JobDemand, sign: int) -> None:
        self.jobs += sign
        for total, amount in (
            (self.allocated, part.allocated),
            (self.request, part.request),
            (self.elastic, part.elastic),
        ):
            if amount is _NOTHING:
                continue
            if sign > 0:
                total.add(amount)
            else:
                _take(total, amount)

    @property
    def exact(self) -> bool:
        return self.request.exact and self.allocated.exact and self.elastic.exact

    def __eq__(self, other: object) -> bool:
        """Whether the amounts are equal; a resource with amount 0 equals a missing one."""
        return (
            isinstance(other, QueueDemand)
            and self.jobs == other.jobs
            and all(
                _amounts(getattr(self, f)) == _amounts(getattr(other, f)) for f in ("allocated", "request", "elastic")
            )
        )

    __hash__ = None  # type: ignore[assignment]


_OF_JOB = ("allocated", "elastic", "queue", "request")


class JobDemand:
    """The part of one job in its queue's demand."""

    __slots__ = _OF_JOB

    def __init__(self, job: Job) -> None:
        self.queue = job.queue
        held = job.allocated
        nothing = not (held.milli_cpu or held.memory or held.scalars)
        self.allocated = _NOTHING if nothing else held.clone()
        c = job.counts
        if sum(c) == c[st.PENDING] + c[st.BOUND] + c[st.BINDING] + c[st.RUNNING]:
            self.request = job.total_request.clone()
        else:
            self.request = Resource()
            for t in job.tasks.values():
                if t.status == st.PENDING or st.IS_ALLOCATED[t.status]:
                    self.request.add(t.request)
        holds = not nothing and not held.is_empty()
        self.elastic = exceeded_part(held, job.min_resources or Resource()) if holds else _NOTHING

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobDemand) and all(getattr(self, f) == getattr(other, f) for f in _OF_JOB)

    __hash__ = None  # type: ignore[assignment]


class Demands:
    """The kept state: demand by queue, and the part of each job in it."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueDemand] = {}
        self.jobs: dict[str, JobDemand] = {}
        self._inexact: set[str] = set()
        """Queues whose sums contained an amount that is too large for exact subtraction."""

    def put(self, uid: str, job: Job | None) -> None:
        old = self.jobs.pop(uid, None)
        if old is not None:
            demand = self.queues[old.queue]
            if not demand.exact:
                self._inexact.add(old.queue)
            demand.count(old, -1)
            if not demand.jobs:
                del self.queues[old.queue]
        if job is not None and job.pod_group is not None:
            new = self.jobs[uid] = JobDemand(job)
            if new.queue not in self.queues:
                self.queues[new.queue] = QueueDemand()
            self.queues[new.queue].count(new, +1)

    def commit_evictions(self) -> None:
        """Compute the sums again that subtraction cannot correct."""
        for name in self._inexact & self.queues.keys():
            demand = self.queues[name] = QueueDemand()
            for part in self.jobs.values():
                if part.queue == name:
                    demand.count(part, +1)
        self._inexact.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Demands) and self.queues == other.queues and self.jobs == other.jobs

    __hash__ = None  # type: ignore[assignment]


def build(model: Cluster) -> Demands:
    demands = Demands()
    for uid, job in model.jobs.items():
        demands.put(uid, job)
    return demands


def apply(demands: Demands, model: Cluster, changed: set[str]) -> None:
    for uid in changed:
        demands.put(uid, model.jobs.get(uid))
    demands.commit_evictions()


def demands_of(cluster: Cluster) -> Demands:
    """The current demands of all queues. Read-only."""
    return state_of(cluster, "queue-demand", None, build, apply, cluster.check_states)


def held_by_others(cluster: Cluster, jobs: Iterable[str]) -> dict[str, Resource] | None:
    """What the jobs of each queue hold, without these jobs; None if amounts are too large for exact subtraction."""
    demands = demands_of(cluster)
    if not all(demand.exact for demand in demands.queues.values()):
        return None
    found = {name: demand.allocated.clone() for name, demand in demands.queues.items()}
    for uid in jobs:
        part = demands.jobs.get(uid)
        if part is not None:
            _take(found[part.queue], part.allocated)
    return found


def _amounts(r: Resource) -> dict[str, float]:
    return {name: amount for name, amount in r.as_dict().items() if amount}


def _take(total: Resource, amount: Resource) -> None:
    """Subtract one part of a sum; scalars that reach 0 are removed."""
    total.sub_unchecked(amount)
    if total.scalars is not None:
        total.scalars = {k: v for k, v in total.scalars.items() if v} or None
