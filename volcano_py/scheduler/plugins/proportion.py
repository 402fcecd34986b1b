"""proportion: queues share the cluster by weight. Volcano: plugin proportion.

What each queue deserves: `queue_shares/weighted.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.extension_points.queues import Loan, QueueLimit
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.counted_resources import CountedResources
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, INFINITY, ZERO, Resource
from volcano_py.scheduler.plugins.queue_shares.inqueue import format_names, gated_deducted
from volcano_py.scheduler.plugins.queue_shares.lending import keeps_guarantee, lends_any, price, stays_within
from volcano_py.scheduler.plugins.queue_shares.weighted import Attributes, attributes_of, fill
from volcano_py.scheduler.plugins.queue_shares.weighted_causes import admission_cause, overused_cause, share_cause
from volcano_py.scheduler.plugins.queue_shares.within import exceeded, within

_ROUNDING = 1e-9
"""Shares that differ by less are equal."""


class Proportion(Plugin):
    """No arguments."""

    name = "proportion"
    session: Session

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.attributes: dict[str, Attributes] = {}
        self._whole = CountedResources()
        """The amounts of the cluster."""
        self._rounds_up: dict[tuple[str, int], bool] = {}
        """By queue and class of pods, until a task is moved: see `_may_round_up`."""

    def on_session_open(self, session: Session) -> None:
        self.session = session
        self.attributes = attributes_of(session)
        fill(list(self.attributes.values()), session.total)
        self._whole = CountedResources.of(session.total)
        for q in self.attributes.values():
            q.set_deserved()
        session.add_entitled(self._entitled)
        session.add_queue_order(self._order_by_claims if session.deviations.fair_admission else self._order)
        session.add_reclaimable(self._reclaimable)
        if session.deviations.rank_holds:
            session.add_unified_evictable(self._evictable)
        session.add_lends(self._lends)
        session.add_overused(self._overused)
        session.add_allocatable(self._allocatable, how_many=self._how_many, left=self._left)
        session.add_simulate_allocatable(self._simulate_allocatable)
        session.add_preemptive(self._preemptive)
        session.add_job_enqueueable(self._enqueueable)
        session.add_job_enqueued(self._enqueued)
        session.add_event_handler(
            lambda task, _: self._moved(task.job, task.request, +1),
            lambda task, _: self._moved(task.job, task.request, -1),
            allocate_run=lambda tasks, _: self._moved(tasks[0].job, tasks[0].request.times(len(tasks)), +1),
        )

    # ---- order -----------------------------------------------------------------------------------------

    def _order(self, left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        a, b = self.attributes[left.name].share, self.attributes[right.name].share
        return (a > b) - (a < b)

    def _order_by_claims(self, left: Queue, right: Queue) -> int:
        """Of equal shares, the queue that has admitted less, by weight, comes first."""
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        first, second = self.attributes[left.name], self.attributes[right.name]
        a, b = first.share, second.share
        if a == b:
            a = first.claimed if first.claimed >= 0 else first.claims(self._whole)
            b = second.claimed if second.claimed >= 0 else second.claims(self._whole)
        return (a > b) - (a < b)

    # ---- admission and placing -------------------------------------------------------------------------

    def _entitled(self, queue: str, requested: Resource) -> bool:
        """Entitled by weight among the queues that have jobs, whatever these jobs request at the moment."""
        q = self.attributes[queue]
        share = self.session.total.clone().multi(q.weight / sum(a.weight for a in self.attributes.values()))
        share.min_dimension(q.real_capability, INFINITY)
        return requested.clone().add(q.allocated).add(q.inqueue).less_equal_dimension(share, requested)[0]

    def _overused(self, queue: Queue) -> bool:
        q = self.attributes[queue.name]
        deviations = self.session.deviations
        if deviations.idle_not_overused and not q.holds:
            return False
        if not q.deserved.less_equal(q.allocated, ZERO):
            return False
        if deviations.whole_pod_shares and any(o.share > q.share for o in self.attributes.values() if o is not q):
            return False
        self.session.queue_causes.setdefault(q.name, overused_cause(self.session, q))
        return True

    def _allocatable(self, queue: Queue, task: Task) -> bool:
        if queue.state != "Open":
            return False
        fits = self._simulate_allocatable(queue, task)
        job = None if fits else self.session.jobs.get(task.job)
        if job is not None and job.cause is None:
            job.block(share_cause(self.session, self.attributes[queue.name], task))
        return fits

    def _simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        q = self.attributes[queue.name]
        if within(q.allocated, task.spec_class.demands, q.deserved, 1):
            return True
        if not self.session.deviations.whole_pod_shares:
            return False
        key = (q.name, task.spec_class.id)
        if key not in self._rounds_up:
            self._rounds_up[key] = _may_round_up(q, task, self.attributes.values())
        return self._rounds_up[key]

    def _how_many(self, queue: Queue, task: Task, limit: int) -> int:
        if queue.state != "Open":
            return 0
        q = self.attributes[queue.name]
        return within(q.allocated, task.spec_class.demands, q.deserved, limit)

    def _left(self, queue: Queue, names: Sequence[str]) -> list[QueueLimit]:
        q = self.attributes[queue.name]
        return [QueueLimit(q.name, {name: q.deserved[name] - q.allocated[name] for name in names})]

    def _enqueueable(self, job: SessionJob) -> Vote:
        q = self.attributes[job.queue]
        if q.queue.state != "Open":
            return Vote.REJECT
        if job.min_resources is None:
            return Vote.PERMIT
        lacking = exceeded(job.min_resources, q.real_capability, (q.allocated, q.inqueue), q.elastic)
        if not lacking:
            return Vote.PERMIT
        text = format_names("queue resource quota insufficient", "insufficient", lacking)
        self.session.note(job, "Normal", "Unschedulable", text)
        job.block(admission_cause(q, job.min_resources, lacking))
        return Vote.REJECT

    def _enqueued(self, job: SessionJob) -> None:
        if job.min_resources is not None:
            q = self.attributes[job.queue]
            q.inqueue.add(gated_deducted(job, job.min_resources))
            q.claimed = -1.0

    def _moved(self, job_uid: str, amount: Resource, sign: int) -> None:
        job = self.session.jobs.get(job_uid)
        if job is None:
            return
        q = self.attributes[job.queue]
        if sign > 0:
            q.allocated.add(amount)
        else:
            q.allocated.sub_unchecked(amount)
        q.update_share()
        self._rounds_up.clear()

    # ---- evictions -------------------------------------------------------------------------------------

    def _preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        if queue.state != "Open":
            return False
        q = self.attributes[queue.name]
        requested: dict[str, float] = {}
        for t in tasks:
            for d, amount in t.spec_class.demands:
                requested[d] = requested.get(d, 0.0) + amount
        return all(q.allocated[d] + amount <= q.deserved[d] for d, amount in requested.items())

    def _evictable(self, context: EvictionContext, candidates: list[Task]) -> list[Task]:
        return candidates if context.kind == "gangpreempt" else self._reclaimable(context, candidates)

    def _reclaimable(self, _: Task | EvictionContext, candidates: list[Task]) -> list[Task]:
        left: dict[str, Resource] = {}
        victims = []
        for t in candidates:
            job = self.session.jobs.get(t.job)
            if job is None:
                continue
            q = self.attributes[job.queue]
            allocated = left.get(job.queue)
            if allocated is None:
                allocated = left[job.queue] = q.allocated.clone()
            if not allocated.less_equal(q.deserved, ZERO):
                allocated.sub_unchecked(t.request)
                victims.append(t)
        return victims

    def _lends(self, loan: Loan) -> float | None:
        q, other = self.attributes[loan.queue.name], self.attributes.get(loan.lender.name)
        return None if other is None else _price(q, other, loan, self.session.total)

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
                session.gauges.append((f"queue_{kind}_milli_cpu", label, amount.milli_cpu))
                session.gauges.append((f"queue_{kind}_memory_bytes", label, amount.memory))
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
