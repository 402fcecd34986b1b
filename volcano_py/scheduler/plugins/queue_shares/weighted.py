"""The shares of queues by weight: what each queue deserves in one session. Volcano: queueAttr of proportion.

What a queue deserves is computed by water filling: free resources are divided among the queues by weight. No queue gets
more than it requests or its capability, nor less than its guarantee. What the jobs of each queue hold and request is
kept between sessions (`demand`).
"""

from __future__ import annotations

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.counted_resources import CountedResources, share_of
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import INFINITY, MAX, ZERO, Resource, exceeded_part, maximum
from volcano_py.scheduler.plugins.queue_shares.demand import QueueDemand, demands_of
from volcano_py.scheduler.plugins.queue_shares.guarantee import guarantee_of
from volcano_py.scheduler.plugins.queue_shares.inqueue import gated_deducted, inqueue_resource


class Attributes:
    """A queue in one session."""

    __slots__ = (
        "_parts",
        "allocated",
        "capability",
        "claimed",
        "deserved",
        "elastic",
        "guarantee",
        "inqueue",
        "name",
        "queue",
        "real_capability",
        "request",
        "share",
        "weight",
    )

    def __init__(self, queue: Queue, demand: QueueDemand, guarantee: Resource, unguaranteed: Resource) -> None:
        self.queue = queue
        self.name = queue.name
        self.weight = queue.weight
        self.allocated = demand.allocated.clone()
        self.request = demand.request.clone()
        self.elastic = demand.elastic
        self.inqueue = Resource()
        self.deserved = Resource()
        self.share = 0.0
        self._parts = CountedResources()
        self.claimed = -1.0
        """−1: not computed yet."""
        self.guarantee = guarantee
        self.real_capability = unguaranteed.clone().add(self.guarantee)
        self.capability: Resource | None = None
        if queue.capability is not None:
            self.capability = queue.capability.clone()
            if self.capability.milli_cpu <= 0:
                self.capability.milli_cpu = MAX
            if self.capability.memory <= 0:
                self.capability.memory = MAX
            self.real_capability.min_dimension(self.capability, INFINITY)

    @property
    def holds(self) -> bool:
        """Whether the queue holds any resource."""
        return not self.allocated.is_empty()

    def set_deserved(self) -> None:
        """Mark what the queue deserves as final for this session."""
        self._parts = CountedResources.of(self.deserved)
        self.update_share()

    def claims(self, whole: CountedResources) -> float:
        """Compute `claimed`: the largest part of the cluster that the queue holds or has admitted jobs for, by
        weight."""
        self.claimed = share_of(self.allocated, whole, self.inqueue) / self.weight
        return self.claimed

    def share_with(self, amount: Resource, sign: int) -> float:
        """The share with an amount more (sign +1) or less (-1)."""
        if sign > 0:
            return share_of(self.allocated, self._parts, amount)
        return share_of(self.allocated.clone().sub_unchecked(amount), self._parts)

    def update_share(self) -> None:
        """Set the share: the largest part that the queue holds of any resource it deserves."""
        self.claimed = -1.0
        self.share = share_of(self.allocated, self._parts)


def fill(queues: list[Attributes], total: Resource) -> None:
    """Set what each queue deserves of `total` by water filling."""
    remaining = total.clone()
    met: set[str] = set()
    while True:
        weights = sum(q.weight for q in queues if q.name not in met)
        if weights == 0:
            return
        before = remaining
        more, less = Resource(), Resource()
        for q in queues:
            if q.name in met:
                continue
            old = q.deserved.clone()
            q.deserved.add(remaining.clone().multi(q.weight / weights))
            q.deserved.min_dimension(q.real_capability, INFINITY)
            q.deserved.min_dimension(q.request, ZERO)
            q.deserved = maximum(q.deserved, q.guarantee)
            if q.request.less_equal(q.deserved, ZERO) or q.deserved == old:
                met.add(q.name)
            increased, decreased = q.deserved.diff(old, ZERO)
            more.add(increased)
            less.add(decreased)
        remaining = exceeded_part(remaining.clone().add(less), more)
        if remaining.is_empty() or remaining == before:
            return


def attributes_of(session: Session) -> dict[str, Attributes]:
    """The attributes of the queues that have a job."""
    demands = demands_of(session.cluster)
    guarantees = {name: guarantee_of(session, queue) for name, queue in session.queues.items()}
    guaranteed = Resource()
    for amount in guarantees.values():
        guaranteed.add(amount)
    unguaranteed = exceeded_part(session.admissible, guaranteed)
    attributes = {
        name: Attributes(known, demand, guarantees[name], unguaranteed)
        for name, demand in sorted(demands.queues.items())
        if (known := session.queues.get(name)) is not None
    }
    for job in session.jobs.active():
        if job.min_resources is None:
            continue
        if job.claims_minimum or (job.phase == "Running" and job.allocated_num >= job.min_available):
            attributes[job.queue].inqueue.add(gated_deducted(job, inqueue_resource(job)))
            if session.deviations.fair_admission:
                attributes[job.queue].request.add(_without_pods(job, job.min_resources))
    return attributes


def _without_pods(job: SessionJob, minimum: Resource) -> Resource:
    """The admitted minimum of a job that has no pods yet."""
    missing = Resource()
    for d in minimum.keys():
        if minimum[d] > job.model.total_request[d]:
            missing[d] = minimum[d] - job.model.total_request[d]
    return missing
