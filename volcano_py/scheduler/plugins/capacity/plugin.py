"""capacity: queues deserve the amounts of their specs, flat or in a tree. Volcano: plugin capacity.

This module contains the callbacks about orders, admission and placing, `victims` those about victims; `queue_tree`
builds the tree and its sums. Without the deviation partial-hierarchy,
no job is admitted, placed or reclaimed from while the hierarchy is invalid, and the sums are not updated with tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import field

from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.extension_points.queues import QueueLimit
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import MAX, Resource
from volcano_py.scheduler.model.resource_names import PODS
from volcano_py.scheduler.plugins.capacity.causes import admission_cause, limit_cause
from volcano_py.scheduler.plugins.capacity.device_quota import DeviceQuotas
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueNode, QueueTree, flat, tree
from volcano_py.scheduler.plugins.capacity.reserved import reserved
from volcano_py.scheduler.plugins.capacity.victims import CapacityVictims
from volcano_py.scheduler.plugins.queue_shares.inqueue import format_names, gated_deducted
from volcano_py.scheduler.plugins.queue_shares.within import within

_GAUGES = [
    (f"queue_{kind}_milli_cpu", f"queue_{kind}_memory_bytes", f"queue_{kind}_scalar_resources")
    for kind in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
]


class Capacity(Plugin):
    """See `Arguments`; `enableHierarchy` enables the tree."""

    name = "capacity"

    class Arguments(PluginArguments):
        ancestor_reclaim_level: int = field(default=0, name="ancestorReclaimLevel")
        """The number of ancestors whose deserved amounts reclaim checks."""
        dra: bool = field(default=True, name="capacity.DynamicResourceAllocationEnable")
        """Whether queues limit devices (`deviceclass/<class>` in their spec), with the feature gate
        DynamicResourceAllocation."""
        dra_consumable: bool = field(default=True, name="capacity.DRAConsumableCapacityEnable")
        """Whether they limit the capacity of devices as well (`<dimension>.deviceclass/<class>`), with the feature gate
        DRAConsumableCapacity."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        self.session = session
        self.hierarchy = session.enabled(self.name, "enableHierarchy")
        self.levels = max(self.arguments.ancestor_reclaim_level, 0) if self.hierarchy else 0
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
        victims = CapacityVictims(session, self.tree, self.levels)
        session.add_reclaimable(victims.reclaimable)
        session.add_lends(victims.lends)
        session.add_unified_evictable(victims.evictable)
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
        for q in [node, *self.tree.ancestors(node, self.levels)]:
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
