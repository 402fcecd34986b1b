"""proportion: queues share the cluster by weight."""

from __future__ import annotations

from typing import Any

from tests.reference.cluster import Queue
from tests.reference.job import Job
from tests.reference.resource import (
    INFINITE,
    Resource,
    diff,
    dominant_share,
    exceeded_part,
    greater_of,
    parse,
)
from tests.reference.session import Handler, Session
from tests.reference.task import ALLOCATED_STATUS, Task
from tests.reference.votes import PERMIT, REJECT


class Attributes:
    """proportion's values of a queue with jobs."""

    def __init__(self, queue: Queue, total: Resource, guarantees: Resource) -> None:
        self.queue = queue
        self.deserved = Resource()
        self.allocated = Resource()
        self.request = Resource()
        self.inqueue = Resource()
        self.elastic = Resource()
        self.guarantee = parse(queue.guarantee)
        self.real_capability = exceeded_part(total, guarantees).add(self.guarantee)
        if queue.capability:
            capability = parse(queue.capability)
            if capability.cpu <= 0:
                capability.cpu = INFINITE
            if capability.memory <= 0:
                capability.memory = INFINITE
            self.real_capability.min_dimension(capability, "infinity")

    def share(self) -> float:
        return dominant_share(self.allocated, self.deserved)


def proportion(session: Session, arguments: dict[str, Any]) -> None:
    attributes = _attributes(session)
    _water_filling(list(attributes.values()), session.total)

    def queue_order(left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        a, b = attributes[left.name].share(), attributes[right.name].share()
        if a == b:
            return 0
        return -1 if a < b else 1

    def overused(queue: Queue) -> bool:
        a = attributes[queue.name]
        return a.deserved.less_equal(a.allocated)

    def allocatable(queue: Queue, task: Task) -> bool:
        return queue.state == "Open" and has_capacity(queue, task)

    def has_capacity(queue: Queue, task: Task) -> bool:
        a = attributes[queue.name]
        return a.allocated.clone().add(task.resreq).less_equal_requested(a.deserved, task.resreq)

    def preemptive(queue: Queue, tasks: list[Task]) -> bool:
        if queue.state != "Open":
            return False
        needed = Resource()
        for task in tasks:
            needed.add(task.resreq)
        a = attributes[queue.name]
        return a.allocated.clone().add(needed).less_equal_requested(a.deserved, needed)

    def reclaimable(reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], int]:
        left: dict[str, Resource] = {}
        victims = []
        for c in candidates:
            a = attributes[session.jobs[c.job].queue]
            allocated = left.setdefault(a.queue.name, a.allocated.clone())
            if not allocated.less_equal(a.deserved):
                allocated.sub(c.resreq)
                victims.append(c)
        return victims, PERMIT

    def enqueueable(job: Job) -> int:
        a = attributes[job.queue]
        if a.queue.state != "Open":
            return REJECT
        if job.min_resources is None:
            return PERMIT
        needed = job.minimum().add(a.allocated).add(a.inqueue).sub(a.elastic)
        return PERMIT if needed.less_equal_requested(a.real_capability, job.minimum()) else REJECT

    def enqueued(job: Job) -> None:
        if job.min_resources is not None:
            attributes[job.queue].inqueue.add(job.deduct_gated(job.minimum()))

    def allocate(task: Task) -> None:
        attributes[session.jobs[task.job].queue].allocated.add(task.resreq)

    def deallocate(task: Task) -> None:
        attributes[session.jobs[task.job].queue].allocated.sub(task.resreq)

    votes = session.votes
    votes.register("QueueOrder", "proportion", queue_order)
    votes.register("Overused", "proportion", overused)
    votes.register("Allocatable", "proportion", allocatable)
    votes.register("SimulateAllocatable", "proportion", has_capacity)
    votes.register("Preemptive", "proportion", preemptive)
    votes.register("Reclaimable", "proportion", reclaimable)
    votes.register("JobEnqueueable", "proportion", enqueueable)
    votes.register("JobEnqueued", "proportion", enqueued)
    session.handlers.append(Handler(allocate, deallocate))


def _attributes(session: Session) -> dict[str, Attributes]:
    guarantees = Resource()
    for queue in session.queues.values():
        guarantees.add(parse(queue.guarantee))
    found: dict[str, Attributes] = {}
    for job in session.jobs.values():
        if job.queue not in found:
            found[job.queue] = Attributes(session.queues[job.queue], session.total, guarantees)
        a = found[job.queue]
        for task in job.tasks.values():
            if task.status in ALLOCATED_STATUS:
                a.allocated.add(task.resreq)
                a.request.add(task.resreq)
            elif task.status == "Pending":
                a.request.add(task.resreq)
        if job.min_resources is not None:
            runs = job.phase == "Running" and job.allocated_task_num() >= job.min_available
            if job.phase == "Inqueue" or runs:
                a.inqueue.add(job.deduct_gated(job.unallocated_minimum()))
        a.elastic.add(job.elastic())
    return dict(sorted(found.items()))  # Volcano has no order; the rounding of sums depends on it


def _water_filling(attributes: list[Attributes], total: Resource) -> None:
    remaining = total.clone()
    met: set[str] = set()
    while True:
        weights = sum(a.queue.weight for a in attributes if a.queue.name not in met)
        if weights == 0:
            return
        before = remaining.clone()
        increased, decreased = Resource(), Resource()
        for a in attributes:
            if a.queue.name in met:
                continue
            old = a.deserved.clone()
            a.deserved.add(remaining.clone().multi(a.queue.weight / weights))
            a.deserved.min_dimension(a.real_capability, "infinity")
            a.deserved.min_dimension(a.request, "zero")
            a.deserved = greater_of(a.deserved, a.guarantee)
            if a.request.less_equal(a.deserved) or a.deserved.same(old):
                met.add(a.queue.name)
            more, less = diff(a.deserved, old)
            increased.add(more)
            decreased.add(less)
        remaining = exceeded_part(remaining.add(decreased), increased)
        if remaining.is_empty() or remaining.same(before):
            return
