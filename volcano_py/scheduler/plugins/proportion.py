"""proportion: queues share the cluster by weight. Volcano: plugin proportion.

What a queue deserves is computed by water filling: the plugin divides free resources among the queues by weight. No
queue gets more than it requests or its capability, nor less than its guarantee. What the jobs of each queue hold and
request is kept between sessions (`build`, `apply`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from volcano_py.scheduler.explain.table import ENQUEUE_LIMIT, QUEUE_LIMIT, QUEUE_OVERUSED, QUEUE_SHARE
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.extension_points.queues import Loan
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, INFINITY, MAX, ZERO, Resource, exceeded_part, maximum
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.plugins.queue_shares.demand import Demand, demands_of
from volcano_py.scheduler.plugins.queue_shares.guarantee import guarantee_of
from volcano_py.scheduler.plugins.queue_shares.inqueue import format_names, gated_deducted, inqueue_resource
from volcano_py.scheduler.plugins.queue_shares.lending import keeps_guarantee, lends_any, price, stays_within
from volcano_py.scheduler.plugins.queue_shares.within import exceeded, within

_ROUNDING = 1e-9
"""Shares that differ by less are equal."""


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

    def __init__(self, queue: Queue, demand: Demand, guarantee: Resource, unguaranteed: Resource) -> None:
        self.queue = queue
        self.name = queue.name
        self.weight = queue.weight
        self.allocated = demand.allocated.clone()
        self.request = demand.request.clone()
        self.elastic = demand.elastic
        self.inqueue = Resource()
        self.deserved = Resource()
        self.share = 0.0
        self._parts: list[tuple[str, float]] = []
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
        self._parts = [(d, self.deserved[d]) for d in self.deserved.names()]
        self.update_share()

    def claims(self, whole: list[tuple[str, float]]) -> float:
        """Compute `claimed`: the largest part of the cluster that the queue holds or has admitted jobs for, by
        weight."""
        largest = 0.0
        for d, of in whole:
            part = (self.allocated[d] + self.inqueue[d]) / of
            if part > largest:
                largest = part
        self.claimed = largest / self.weight
        return self.claimed

    def share_with(self, amount: Resource, sign: int) -> float:
        """The share with an amount more (sign +1) or less (-1)."""
        return max(((self.allocated[d] + sign * amount[d]) / of for d, of in self._parts), default=0.0)

    def update_share(self) -> None:
        """Set the share: the largest part that the queue holds of any resource it deserves."""
        self.claimed = -1.0
        largest = 0.0
        for d, of in self._parts:
            part = self.allocated[d] / of
            if part > largest:
                largest = part
        self.share = largest


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


class Proportion(Plugin):
    """No arguments."""

    name = "proportion"

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.attributes: dict[str, Attributes] = {}

    def on_session_open(self, session: Session) -> None:
        self.attributes = attributes = _attributes(session)
        fill(list(attributes.values()), session.total)
        fair = session.deviations.fair_admission
        whole = [(d, session.total[d]) for d in session.total.names()]
        for q in attributes.values():
            q.set_deserved()

        spare_idle = session.deviations.idle_not_overused
        rounds_up = session.deviations.whole_pod_shares

        def order(left: Queue, right: Queue) -> int:
            if left.priority != right.priority:
                return -1 if left.priority > right.priority else 1
            first, second = attributes[left.name], attributes[right.name]
            a, b = first.share, second.share
            if a == b and fair:
                a = first.claimed if first.claimed >= 0 else first.claims(whole)
                b = second.claimed if second.claimed >= 0 else second.claims(whole)
            return (a > b) - (a < b)

        def entitled(queue: str, requested: Resource) -> bool:
            """Entitled by weight among the queues that have jobs, whatever these jobs request at the moment."""
            q = attributes[queue]
            share = session.total.clone().multi(q.weight / sum(a.weight for a in attributes.values()))
            share.min_dimension(q.real_capability, INFINITY)
            return requested.clone().add(q.allocated).add(q.inqueue).less_equal_dimension(share, requested)[0]

        def overused(queue: Queue) -> bool:
            q = attributes[queue.name]
            if spare_idle and not q.holds:
                return False
            if not q.deserved.less_equal(q.allocated, ZERO):
                return False
            if rounds_up and any(other.share > q.share for other in attributes.values() if other is not q):
                return False
            session.queue_causes.setdefault(q.name, _overused_cause(session, q))
            return True

        def preemptive(queue: Queue, tasks: Sequence[Task]) -> bool:
            q = attributes[queue.name]
            if queue.state != "Open":
                return False
            requested: dict[str, float] = {}
            for t in tasks:
                for d, amount in t.spec_class.demands:
                    requested[d] = requested.get(d, 0.0) + amount
            return all(q.allocated[d] + amount <= q.deserved[d] for d, amount in requested.items())

        def allocatable(queue: Queue, task: Task) -> bool:
            if queue.state != "Open":
                return False
            fits = simulate_allocatable(queue, task)
            job = None if fits else session.jobs.get(task.job)
            if job is not None and job.cause is None:
                job.block(_share_cause(session, attributes[queue.name], task))
            return fits

        def simulate_allocatable(queue: Queue, task: Task) -> bool:
            q = attributes[queue.name]
            for d, amount in task.spec_class.demands:
                if q.allocated[d] + amount > q.deserved[d]:
                    return rounds_up and _may_round_up(q, task, attributes.values())
            return True

        def how_many(queue: Queue, task: Task, limit: int) -> int:
            if queue.state != "Open":
                return 0
            q = attributes[queue.name]
            return within(q.allocated, task.spec_class.demands, q.deserved, limit)

        def evictable(context: EvictionContext, candidates: list[Task]) -> list[Task]:
            return candidates if context.kind == "gangpreempt" else reclaimable(context, candidates)

        def reclaimable(_: Task | EvictionContext, candidates: list[Task]) -> list[Task]:
            left: dict[str, Resource] = {}
            victims = []
            for t in candidates:
                job = session.jobs.get(t.job)
                if job is None:
                    continue
                q = attributes[job.queue]
                allocated = left.get(job.queue)
                if allocated is None:
                    allocated = left[job.queue] = q.allocated.clone()
                if not allocated.less_equal(q.deserved, ZERO):
                    allocated.sub_unchecked(t.request)
                    victims.append(t)
            return victims

        def lends(loan: Loan) -> float | None:
            q, other = attributes[loan.queue.name], attributes.get(loan.lender.name)
            if other is None:
                return None
            return _price(q, other, loan, session.total)

        def enqueueable(job: SessionJob) -> Vote:
            q = attributes[job.queue]
            if q.queue.state != "Open":
                return Vote.REJECT
            if job.min_resources is None:
                return Vote.PERMIT
            lacking = exceeded(job.min_resources, q.real_capability, (q.allocated, q.inqueue), q.elastic)
            if not lacking:
                return Vote.PERMIT
            text = format_names("queue resource quota insufficient", "insufficient", lacking)
            session.note(job, "Normal", "Unschedulable", text)
            job.block(_admission_cause(q, job.min_resources, lacking))
            return Vote.REJECT

        def enqueued(job: SessionJob) -> None:
            if job.min_resources is not None:
                q = attributes[job.queue]
                q.inqueue.add(gated_deducted(job, job.min_resources))
                q.claimed = -1.0

        def moved(job_uid: str, amount: Resource, sign: int) -> None:
            job = session.jobs.get(job_uid)
            if job is None:
                return
            q = attributes[job.queue]
            if sign > 0:
                q.allocated.add(amount)
            else:
                q.allocated.sub_unchecked(amount)
            q.update_share()

        session.add_entitled(entitled)
        session.add_queue_order(order)
        session.add_reclaimable(reclaimable)
        if session.deviations.rank_holds:
            session.add_unified_evictable(evictable)
        session.add_lends(lends)
        session.add_overused(overused)
        session.add_allocatable(allocatable, how_many=how_many)
        session.add_simulate_allocatable(simulate_allocatable)
        session.add_preemptive(preemptive)
        session.add_job_enqueueable(enqueueable)
        session.add_job_enqueued(enqueued)
        session.add_event_handler(
            lambda task, _: moved(task.job, task.request, +1),
            lambda task, _: moved(task.job, task.request, -1),
            allocate_run=lambda tasks, _: moved(tasks[0].job, tasks[0].request.times(len(tasks)), +1),
        )

    def on_session_close(self, session: Session) -> None:
        """Queue metrics, in the units of Resource."""
        for q in self.attributes.values():
            label = {"queue_name": q.name}
            for kind, amount in (
                ("allocated", q.allocated),
                ("request", q.request),
                ("deserved", q.deserved),
                ("capacity", q.capability or Resource()),
                ("real_capacity", q.real_capability),
                ("inqueue", q.inqueue),
            ):
                session.gauges.append((f"queue_{kind}_milli_cpu", label, amount[CPU]))
                session.gauges.append((f"queue_{kind}_memory_bytes", label, amount[MEMORY]))
                for name, value in (amount.scalars or {}).items():
                    session.gauges.append((f"queue_{kind}_scalar_resources", {**label, "resource": name}, value))
            session.gauges.append(("queue_share", label, q.share))
            session.gauges.append(("queue_weight", label, q.weight))
            over = (q.holds or not session.deviations.idle_not_overused) and q.deserved.less_equal(q.allocated, ZERO)
            session.gauges.append(("queue_overused", label, float(over)))


def _price(q: Attributes, lender: Attributes, loan: Loan, total: Resource) -> float | None:
    """See `QueueLimits.add_lends`. A queue is entitled to a gang within its share, or if its share is not larger
    afterwards than the share of the lender."""
    if not lends_any(lender, loan.unit, loan.short) or not keeps_guarantee(lender, loan.unit):
        return None
    larger = q.share_with(loan.requested, +1) > lender.share_with(loan.unit, -1) + _ROUNDING
    if larger and not stays_within(q, loan.requested):
        return None
    return price(lender, loan.unit, total)


def _may_round_up(q: Attributes, task: Task, attributes: Collection[Attributes]) -> bool:
    """Whether a queue may hold a task that exceeds what it deserves, because pods cannot be divided: it holds less
    than it deserves so far, or no larger share afterwards than another queue. The capability holds."""
    demands = task.spec_class.demands
    if any(q.allocated[d] + amount > q.real_capability[d] + EPS for d, amount in demands):
        return False
    if all(q.allocated[d] < q.deserved[d] - EPS for d, amount in demands if q.allocated[d] + amount > q.deserved[d]):
        return True
    share = q.share_with(task.request, +1)
    return any(share <= other.share + _ROUNDING for other in attributes if other is not q)


def _overused_cause(session: Session, q: Attributes) -> Cause:
    """The resource of which the queue holds the largest part, of those where it holds its share."""
    tightest = max(q.deserved.names(), key=lambda d: (q.allocated[d] / max(q.deserved[d], 1.0), d), default=CPU)
    return QUEUE_OVERUSED.because(
        queue=q.name,
        resource=tightest,
        held=q.allocated[tightest],
        limit=q.deserved[tightest],
        total=session.total[tightest],
    )


def _share_cause(session: Session, q: Attributes, task: Task) -> Cause:
    """Why a queue cannot hold a task: the task would exceed the queue's capability, or what the queue deserves."""
    lacking = [(d, n) for d, n in task.spec_class.demands if q.allocated[d] + n > q.deserved[d]]
    d, amount = lacking[0] if lacking else (CPU, 0.0)
    held, limit = q.allocated[d], q.deserved[d]
    if q.capability is not None and limit >= q.capability[d] > 0:
        return QUEUE_LIMIT.because(
            queue=q.name,
            path=q.name,
            resource=d,
            requested=amount,
            held=held,
            limit=limit,
            missing=held + amount - limit,
        )
    return QUEUE_SHARE.because(
        queue=q.name,
        resource=d,
        requested=amount,
        held=held,
        limit=limit,
        missing=held + amount - limit,
        total=session.total[d],
    )


def _admission_cause(q: Attributes, minimum: Resource, lacking: list[str]) -> Cause:
    """Why the queue does not admit a job with this minimum."""
    d = next(iter(lacking), CPU)
    held, limit = q.allocated[d] + q.inqueue[d] - q.elastic[d], q.real_capability[d]
    return ENQUEUE_LIMIT.because(
        queue=q.name,
        path=q.name,
        resource=d,
        requested=minimum[d],
        held=held,
        limit=limit,
        missing=held + minimum[d] - limit,
    )


def _attributes(session: Session) -> dict[str, Attributes]:
    """Attributes of the queues that have a job."""
    demands = demands_of(session.cluster)
    guaranteed = Resource()
    for queue in session.queues.values():
        guaranteed.add(guarantee_of(session, queue))
    unguaranteed = exceeded_part(session.admissible, guaranteed)
    attributes = {
        name: Attributes(known, demand, guarantee_of(session, known), unguaranteed)
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
