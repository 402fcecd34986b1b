"""capacity: queues deserve the amounts of their specs, flat or in a tree. Volcano: plugin capacity.

This module contains the callbacks; `queue_tree` builds the tree and its sums. Without the deviation partial-hierarchy,
no job is admitted, placed or reclaimed from while the hierarchy is invalid, and the sums are not updated with tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.extension_points.queues import Loan, QueueLimit
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.victim_order import victims_queue
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import MAX, ZERO, Resource, intersection
from volcano_py.scheduler.model.resource_names import PODS
from volcano_py.scheduler.plugins.capacity.arguments import CapacityArguments
from volcano_py.scheduler.plugins.capacity.causes import admission_cause, limit_cause
from volcano_py.scheduler.plugins.capacity.device_quota import DeviceQuotas
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueNode, QueueTree, flat, tree
from volcano_py.scheduler.plugins.capacity.reserved import reserved
from volcano_py.scheduler.plugins.queue_shares.inqueue import format_names, gated_deducted
from volcano_py.scheduler.plugins.queue_shares.lending import (
    is_above,
    keeps_guarantee,
    lends_any,
    price,
    stays_within,
)
from volcano_py.scheduler.plugins.queue_shares.within import within

_GAUGES = [
    (f"queue_{kind}_milli_cpu", f"queue_{kind}_memory_bytes", f"queue_{kind}_scalar_resources")
    for kind in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
]


class Capacity(Plugin):
    """See `Arguments`; `enableHierarchy` enables the tree."""

    name = "capacity"

    Arguments = CapacityArguments
    arguments: CapacityArguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.level = max(read.ancestor_reclaim_level, 0)

    def on_session_open(self, session: Session) -> None:
        self.session = session
        self.hierarchy = session.enabled(self.name, "enableHierarchy")
        self.live_branches = session.deviations.live_branch_shares
        self.tree: QueueTree = tree(session) if self.hierarchy else flat(session)
        if self.tree.problem:
            self.warn(f"{self.tree.problem}")
        else:
            session.add_queue_order(self._order)
            if self.hierarchy:
                session.add_victim_queue_order(self._victim_order)
        gates = session.cluster.features
        self.devices: DeviceQuotas | None = None
        if self.arguments.dra and "DynamicResourceAllocation" in gates and not self.tree.problem:
            with_capacity = self.arguments.dra_consumable and "DRAConsumableCapacity" in gates
            self.devices = DeviceQuotas(session, self.tree, with_capacity)
        session.add_entitled(self._entitled)
        session.add_allocatable(self._allocatable, how_many=self._how_many, left=self._left)
        session.add_simulate_allocatable(self._simulate_allocatable)
        session.add_preemptive(self._preemptive)
        session.add_job_enqueueable(self._enqueueable)
        session.add_job_enqueued(self._enqueued)
        session.add_reclaimable(self._reclaimable)
        session.add_lends(self._lends)
        self.named: dict[str, frozenset[str]] = {}
        session.add_unified_evictable(self._evictable)
        self.reserved = reserved(session) if session.moves.removes_queue_gates else {}
        session.add_event_handler(
            lambda task, _: self._moved(task, +1),
            lambda task, _: self._moved(task, -1),
            allocate_run=lambda tasks, _: self._moved(tasks[0], +1, len(tasks)),
            held=self._held,
        )
        self.holds = 0
        """The number of tasks for which capacity is held. It counts in common parent queues for tasks of other leaf
        queues; within a leaf queue, the order of its jobs decides."""

    # ---- orders -----------------------------------------------------------------------------------------

    def _order(self, left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        nodes = self.tree.nodes
        a, b = nodes[left.name], nodes[right.name]
        if self.hierarchy:
            if a.children:
                if not b.children:
                    return 1
            elif b.children:
                return -1
            else:
                over_a, over_b = a.branch, b.branch
                if len(over_a) > 1 and len(over_b) > 1 and over_a[1] is not over_b[1]:
                    a, b = over_a[1], over_b[1]  # most queues have nothing but root in common
                else:
                    a, b = self.tree.below_common(a, b)
        # The smaller share first; of equal shares, the queue that deserves a resource first.
        return 0 if a.order == b.order else -1 if a.order < b.order else 1

    def _victim_order(self, left: Queue, right: Queue, preemptor: Queue | None) -> int:
        if preemptor is None:
            return 0
        mine = self.tree.nodes[preemptor.name]
        a = self.tree.common_level(self.tree.nodes[left.name], mine)
        b = self.tree.common_level(self.tree.nodes[right.name], mine)
        return (a < b) - (a > b)

    # ---- admission and placing -------------------------------------------------------------------------

    def _usable(self, queue: Queue, closed_too: bool = False) -> QueueNode | None:
        """The queue's node, if jobs in this queue may be scheduled."""
        node = self.tree.nodes.get(queue.name)
        if self.tree.problem or node is None or (queue.state != "Open" and not closed_too):
            return None
        return node if not self.hierarchy or node.is_leaf else None

    def _allocatable(self, queue: Queue, task: Task) -> bool:
        node = self._usable(queue)
        fits = self._fits(node, task)
        if fits and node is not None and self.session.moves.removes_queue_gates and task.needs_queue_admission:
            self.reserved.setdefault(node.name, {})[task.key] = task.request
        job = None if fits or node is None else self.session.jobs.get(task.job)
        if job is not None and node is not None and job.cause is None:
            cause = limit_cause(self.session, self.tree, node, task)
            if cause is not None:
                job.block(cause)
        return fits

    def _how_many(self, queue: Queue, task: Task, limit: int) -> int:
        node = self._usable(queue)
        if node is None or self.reserved or (self.devices is not None and task.claims.devices is not None):
            return 0
        for q in self.tree.upwards(node):
            taken = q.allocated.clone().add(q.held).sub_unchecked(node.held) if self.holds else q.allocated
            limit = within(taken, task.spec_class.demands, q.real_capability, limit)
        return limit

    def _left(self, queue: Queue, names: Sequence[str]) -> list[QueueLimit]:
        node = self._usable(queue)
        if node is None:
            return [QueueLimit(queue.name, dict.fromkeys(names, -MAX))]
        found = []
        for q in self.tree.upwards(node):
            if q.path or not self.hierarchy or q.queue.capability is not None:  # of root: if it states one
                left = {d: q.real_capability[d] - q.allocated[d] - q.held[d] + node.held[d] for d in names}
                found.append(QueueLimit(q.name, left))
        return found

    def _simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        return self._fits(self._usable(queue, closed_too=True), task)

    def _fits(self, node: QueueNode | None, task: Task) -> bool:
        if node is None:
            return False
        if self.devices is not None and not self.devices.allocatable(task, node.name):
            return False
        kept = [r for key, r in self.reserved.get(node.name, {}).items() if key != task.key]
        for d, amount in task.spec_class.demands:
            if kept and node.allocated[d] + sum(r[d] for r in kept) + amount > node.real_capability[d]:
                return False
        holds = self.holds
        for q in self.tree.upwards(node):
            for d, amount in task.spec_class.demands:
                taken = q.allocated[d] + q.held[d] - node.held[d] if holds else q.allocated[d]
                if taken + amount > q.real_capability[d]:
                    return False
        return True

    def _preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        node = self.tree.nodes.get(queue.name)
        if self.tree.problem or node is None or queue.state != "Open":
            return False
        request = Resource()
        for t in tasks:
            request.add(t.request)
        levels = self.level if self.hierarchy else 0
        for q in [node, *self.tree.ancestors(node, levels)]:
            used = q.allocated.clone().add(request)
            # Of an ancestor, only what it deserves counts: its limit changes with each victim below it.
            if q is node and not used.less_equal_dimension(q.real_capability, request)[0]:
                return False
            if used.less_equal_partly_dimension(q.deserved, request, drop_zero=True)[0]:
                return True
        return False

    def _entitled(self, queue: str, requested: Resource) -> bool:
        """Whether the queue deserves these amounts as well, by its own spec."""
        node = self.tree.nodes.get(queue)
        if node is None or self.tree.problem:
            return False
        return requested.clone().add(node.allocated).add(node.inqueue).less_equal_dimension(node.deserved, requested)[0]

    def _enqueueable(self, job: SessionJob) -> Vote:
        node = self._usable(self.session.queues[job.queue])
        if node is None:
            if job.queue in self.session.unusable_queues:
                self.session.note(job, "Normal", "Unschedulable", self.session.unusable_queues[job.queue])
            return Vote.REJECT
        if self.devices is not None and not self.devices.enqueueable(job):
            text = format_names("queue resource quota insufficient", "insufficient", ["dra-resource-exceeded"])
            self.session.note(job, "Normal", "Unschedulable", text)
            return Vote.REJECT
        if job.min_resources is None:
            return Vote.PERMIT
        least = job.min_resources
        requested = [(d, least[d]) for d in least.keys() if d != PODS and least[d] > 0]
        for q in self.tree.upwards(node):
            lacking = [d for d, v in requested if v + q.allocated[d] + q.inqueue[d] - q.elastic[d] > q.admits[d]]
            if lacking:
                text = format_names("queue resource quota insufficient", "insufficient", lacking)
                self.session.note(job, "Normal", "Unschedulable", text)
                job.block(admission_cause(self.session, self.tree, node, q, job.min_resources, lacking))
                return Vote.REJECT
        return Vote.PERMIT

    def _enqueued(self, job: SessionJob) -> None:
        node = self.tree.nodes.get(job.queue)
        if self.devices is not None:
            self.devices.enqueued(job)
        if job.min_resources is None or node is None or self.tree.problem:
            return
        amount = gated_deducted(job, job.min_resources)
        for q in self.tree.upwards(node):
            q.inqueue.add(amount)

    def _moved(self, task: Task, sign: int, count: int = 1) -> None:
        """Count a task that gets or leaves a node, or `count` equal tasks without claims and reservations."""
        job = self.session.jobs.get(task.job)
        node = self.tree.nodes.get(job.queue) if job is not None else None
        if node is None or self.tree.problem:
            return
        if self.devices is not None:
            self.devices.moved(task, node.name, sign)
        if self.reserved and sign > 0 and self.session.deviations.reserved_once:
            self.reserved.get(node.name, {}).pop(task.key, None)
        amount = task.request if count == 1 else task.request.times(count)
        for q in self.tree.upwards(node):
            if sign > 0:
                q.allocated.add(amount)
            else:
                q.allocated.sub_unchecked(amount)
            if q is node or self.live_branches:
                q.update_share()

    def _held(self, task: Task, sign: int) -> None:
        """Count a pending task for which allocate holds the capacity that was freed for it."""
        job = self.session.jobs.get(task.job)
        node = self.tree.nodes.get(job.queue) if job is not None else None
        if node is None or self.tree.problem:
            return
        self.holds += sign
        for q in self.tree.upwards(node):
            if sign > 0:
                q.held.add(task.request)
            else:
                q.held.sub_unchecked(task.request)

    # ---- victims ----------------------------------------------------------------------------------------

    def _reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        if self.tree.problem:
            return []
        mine = self.session.jobs.get(reclaimer.job)
        own = self.tree.nodes.get(mine.queue) if mine is not None else None
        left: dict[str, Resource] = {}
        victims: list[Task] = []
        order = victims_queue(self.session, candidates, reclaimer)
        while order:
            v = order.pop()
            job = self.session.jobs.get(v.job)
            node = self.tree.nodes.get(job.queue) if job is not None else None
            if node is None or not intersection(v.request, reclaimer.request, ignore_pods=True):
                continue
            allocated = _rest_of(node, left)
            if not node.guarantee.less_equal(allocated.clone().sub_unchecked(v.request), ZERO):
                continue
            if not intersection(v.request, node.deserved):
                if own is not None and self._kin_without_claim(reclaimer, own, node):
                    continue
            elif not allocated.greater_partly_relevant(node.deserved, v.request)[0]:
                continue
            checked = self._ancestors_give(v, node, own, left)
            if checked is None:
                continue
            for name in (node.name, *checked):
                left[name].sub_unchecked(v.request)
            victims.append(v)
        return victims

    def _kin_without_claim(self, reclaimer: Task, own: QueueNode, other: QueueNode) -> bool:
        """Whether the queues have a common ancestor and the reclaimer requests no resource that its queue deserves."""
        if not self.hierarchy or not self.level:
            return False
        near = {q.name for q in self.tree.ancestors(own, self.level)}
        kin = any(q.name in near for q in self.tree.ancestors(other, self.level))
        return kin and not intersection(reclaimer.request, own.deserved)

    def _ancestors_give(
        self, victim: Task, node: QueueNode, own: QueueNode | None, left: dict[str, Resource]
    ) -> list[str] | None:
        """The ancestors that lose with the victim's queue; None: one of them must not."""
        if not self.hierarchy or not self.level:
            return []
        checked = []
        mine = self.tree.ancestors(own, self.level) if own is not None else []
        for i, q in enumerate(self.tree.ancestors(node, self.level)):
            if i < len(mine) and mine[i].name == q.name:
                continue
            allocated = _rest_of(q, left)
            claimed = intersection(victim.request, q.deserved)
            if claimed and not allocated.greater_partly_relevant(q.deserved, victim.request)[0]:
                return None
            checked.append(q.name)
        return checked

    def _evictable(self, context: EvictionContext, candidates: list[Task]) -> list[Task]:
        if context.kind == "gangpreempt":
            return candidates
        if self.tree.problem:
            return []
        left: dict[str, Resource] = {}
        victims = []
        for v in candidates:
            job = self.session.jobs.get(v.job)
            node = self.tree.nodes.get(job.queue) if job is not None else None
            if node is None:
                continue
            allocated = _rest_of(node, left)
            if not node.guarantee.less_equal(allocated.clone().sub_unchecked(v.request), ZERO):
                continue
            immediate = not intersection(v.request, node.deserved)
            if immediate or allocated.greater_partly_relevant(node.deserved, v.request)[0]:
                allocated.sub_unchecked(v.request)
                victims.append(v)
        return victims

    def _lends(self, loan: Loan) -> float | None:
        """See `QueueLimits.add_lends`. Queues are compared just below their last common ancestor."""
        mine, lender = self.tree.nodes.get(loan.queue.name), self.tree.nodes.get(loan.lender.name)
        if self.tree.problem or mine is None or lender is None:
            return None
        a, b = self.tree.below_common(mine, lender)
        named = self._named(a)
        if not stays_within(a, loan.requested, named):
            return None
        short = loan.short & named
        if not lends_any(b, loan.unit, short):
            return None
        below_common = lender.branch[lender.branch.index(b) :]
        if not all(keeps_guarantee(q, loan.unit) for q in below_common):
            return None
        for q in below_common[1:]:
            # Within the subtree of the lender, queues above their own share lend first.
            if not any(is_above(q, d) for d in short) and any(
                is_above(other, d) for other in q.path[-1].children for d in short
            ):
                return None
        return price(b, loan.unit, self.session.total)

    def _named(self, node: QueueNode) -> frozenset[str]:
        """The resources of which a queue on the level of this one deserves some."""
        parent = node.path[-1].name if node.path else ""
        found = self.named.get(parent)
        if found is None:
            if node.path:
                deserved = [q.deserved for q in node.path[-1].children]
            else:
                deserved = [q.deserved for q in self.session.queues.values() if q.deserved is not None]
                deserved += [q.deserved for q in self.tree.nodes.values()]
            found = frozenset(d for amounts in deserved for d in amounts.names() if amounts[d] > 0 and d != PODS)
            self.named[parent] = found
        return found

    # ---- metrics ----------------------------------------------------------------------------------------

    def on_session_close(self, session: Session) -> None:
        """Queue metrics, in the units of Resource."""
        gauges = session.gauges
        for q in self.tree.nodes.values():
            label = {"queue_name": q.name}
            amounts = (q.allocated, q.request, q.deserved, q.capability, q.real_capability, q.inqueue)
            for (cpu, memory, scalar), amount in zip(_GAUGES, amounts, strict=True):
                gauges.append((cpu, label, amount.milli_cpu))
                gauges.append((memory, label, amount.memory))
                if amount.scalars:
                    for name, value in amount.scalars.items():
                        gauges.append((scalar, {"queue_name": q.name, "resource": name}, value))
            gauges.append(("queue_share", label, q.share))
            gauges.append(("queue_overused", label, float(q.share > 1)))


def _rest_of(q: QueueNode, left: dict[str, Resource]) -> Resource:
    """What a queue holds without the victims selected so far; `left` contains it by queue."""
    rest = left.get(q.name)
    if rest is None:
        rest = left[q.name] = q.allocated.clone()
    return rest
