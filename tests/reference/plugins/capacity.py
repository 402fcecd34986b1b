"""capacity: queues deserve the amounts of their specs, flat or in a tree below `root`."""

from __future__ import annotations

from typing import Any

from tests.reference.cluster import Queue
from tests.reference.conf import get_int
from tests.reference.job import Job
from tests.reference.resource import EPS, INFINITE, Resource, dominant_share, exceeded_part, greater_of, parse
from tests.reference.session import Handler, Session
from tests.reference.task import ALLOCATED_STATUS, Task
from tests.reference.victims import victims_queue
from tests.reference.votes import PERMIT, REJECT

ROOT = "root"
MAX_INT = float(2**63 - 1)


class Attributes:
    """capacity's values of a queue."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.name = queue.name
        self.ancestors: list[Attributes] = []
        """From root down to the parent."""
        self.children: list[Attributes] = []
        self.allocated = Resource()
        self.request = Resource()
        self.inqueue = Resource()
        self.elastic = Resource()
        self.deserved = parse(queue.deserved)
        self.guarantee = parse(queue.guarantee)
        self.capability = parse(queue.capability)
        self.real_capability = Resource()
        self.share = 0.0

    def update_share(self) -> None:
        self.share = 1.0 if self.deserved.is_empty() else dominant_share(self.allocated, self.deserved)

    def with_ancestors(self) -> list[Attributes]:
        """The queue and its ancestors."""
        return [self, *reversed(self.ancestors)]

    def above(self, level: int) -> Attributes | None:
        """The ancestor at a distance."""
        return self.ancestors[-level] if level <= len(self.ancestors) else None


class Broken(Exception):
    """The hierarchy is invalid."""


def capacity(session: Session, arguments: dict[str, Any]) -> None:
    Capacity(session, arguments).register()


class Capacity:
    def __init__(self, session: Session, arguments: dict[str, Any]) -> None:
        self.session = session
        self.level = max(get_int(arguments, "ancestorReclaimLevel", 0), 0)
        self.hierarchy = session.conf.first_flag("capacity", "enableHierarchy")
        self.ready = True
        self.of: dict[str, Attributes] = {}
        try:
            if self.hierarchy:
                self.build_tree()
            else:
                self.build_flat()
        except Broken:
            self.ready = False
        for a in self.of.values():
            a.update_share()

    def register(self) -> None:
        votes = self.session.votes
        if self.ready:
            votes.register("QueueOrder", "capacity", self.order_in_tree if self.hierarchy else self.order)
            if self.hierarchy:
                votes.register("VictimQueueOrder", "capacity", self.victim_order)
        votes.register("Allocatable", "capacity", self.allocatable)
        votes.register("SimulateAllocatable", "capacity", self.simulated_allocatable)
        votes.register("Preemptive", "capacity", self.preemptive)
        votes.register("JobEnqueueable", "capacity", self.enqueueable)
        votes.register("JobEnqueued", "capacity", self.enqueued)
        votes.register("Reclaimable", "capacity", self.reclaimable)
        votes.register("UnifiedEvictable", "capacity", self.unified)
        self.session.handlers.append(Handler(self.allocate, self.deallocate))

    # --- attributes

    def build_flat(self) -> None:
        session = self.session
        guarantees = Resource()
        for queue in session.queues.values():
            guarantees.add(parse(queue.guarantee))
        for job in session.jobs.values():
            if job.queue not in self.of:
                a = self.of[job.queue] = Attributes(session.queues[job.queue])
                a.real_capability = exceeded_part(session.total, guarantees).add(a.guarantee)
                if a.queue.capability:
                    if a.capability.cpu <= 0:
                        a.capability.cpu = INFINITE
                    if a.capability.memory <= 0:
                        a.capability.memory = INFINITE
                    a.real_capability.min_dimension(a.capability, "infinity")
                a.deserved.min_dimension(a.real_capability, "infinity")
                a.deserved = greater_of(a.deserved, a.guarantee)
            self.add_job(job, [self.of[job.queue]])

    def build_tree(self) -> None:
        queues = self.session.queues
        if ROOT not in queues:
            raise Broken("no root")
        self.of = {name: Attributes(queue) for name, queue in queues.items()}
        for a in self.of.values():
            seen = {a.name}
            at = a
            while at.name != ROOT:
                parent = self.of.get(at.queue.parent or ROOT)
                if parent is None or parent.name in seen:
                    raise Broken("a parent that is unknown, or below itself")
                seen.add(parent.name)
                a.ancestors.insert(0, parent)
                at = parent
            if a.ancestors:
                a.ancestors[-1].children.append(a)
        for job in self.session.jobs.values():
            if self.of[job.queue].children:
                raise Broken("a job in a queue that has children")
        for job in self.session.jobs.values():
            self.add_job(job, self.of[job.queue].with_ancestors())
        root = self.of[ROOT]
        if root.capability.is_empty():
            root.capability = Resource(INFINITE, INFINITE, dict.fromkeys(self.session.total.scalars or {}, MAX_INT))
        root.real_capability = root.capability.clone()
        self.descend(root)

    def descend(self, parent: Attributes) -> None:
        guarantees, deserved = Resource(), Resource()
        for child in parent.children:
            child.deserved = greater_of(child.deserved, child.guarantee)
            guarantees.add(child.guarantee)
            deserved.add(child.deserved)
            if child.capability.cpu <= 0:
                child.capability.cpu = parent.capability.cpu
            if child.capability.memory <= 0:
                child.capability.memory = parent.capability.memory
            for name, amount in (parent.capability.scalars or {}).items():
                if name not in (child.capability.scalars or {}):
                    child.capability.add_scalar(name, amount)
        if parent.name == ROOT:
            parent.guarantee, parent.deserved = guarantees, deserved
        for child in parent.children:
            left = exceeded_part(parent.real_capability, guarantees)
            child.real_capability = left.add(child.guarantee)
            child.real_capability.min_dimension(child.capability, "infinity")
            self.descend(child)

    def add_job(self, job: Job, to: list[Attributes]) -> None:
        for a in to:
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

    # --- orders

    def order(self, left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        return compare_share(self.of[left.name], self.of[right.name])

    def order_in_tree(self, left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return -1 if left.priority > right.priority else 1
        a, b = self.of[left.name], self.of[right.name]
        if bool(a.children) != bool(b.children):
            return 1 if a.children else -1
        if a.children:
            return compare_share(a, b)
        level = self.common_level(a, b)
        a = a.ancestors[level + 1] if level + 1 < len(a.ancestors) else a
        b = b.ancestors[level + 1] if level + 1 < len(b.ancestors) else b
        return compare_share(a, b)

    def common_level(self, a: Attributes, b: Attributes) -> int:
        """The index of the last common ancestor."""
        level = 0
        for i, (x, y) in enumerate(zip(a.ancestors, b.ancestors, strict=False)):
            if x is not y:
                break
            level = i
        return level

    def victim_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        mine = self.of[preemptor.name]
        a, b = self.common_level(self.of[left.name], mine), self.common_level(self.of[right.name], mine)
        return b - a

    # --- callbacks with a boolean result

    def _usable(self, queue: Queue) -> bool:
        """Whether tasks may be placed in the queue at all."""
        if not self.ready or queue.state != "Open":
            return False
        return not (self.hierarchy and self.of[queue.name].children)

    def _levels(self, queue: Queue) -> list[Attributes]:
        return self.of[queue.name].with_ancestors() if self.hierarchy else [self.of[queue.name]]

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return queue.state == "Open" and self.simulated_allocatable(queue, task)

    def simulated_allocatable(self, queue: Queue, task: Task) -> bool:
        """Volcano does not check here whether the queue is open."""
        if not self.ready or (self.hierarchy and self.of[queue.name].children):
            return False
        for a in self._levels(queue):
            used = a.allocated.clone().add(task.resreq)
            if not used.less_equal_requested(a.real_capability, task.resreq):
                return False
        return True

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        if not self.ready or queue.state != "Open":
            return False
        needed = Resource()
        for task in tasks:
            needed.add(task.resreq)
        own = self.of[queue.name]
        used = own.allocated.clone().add(needed)
        if not used.less_equal_requested(own.real_capability, needed):
            return False
        if within_partly(used, own.deserved, needed):
            return True
        if not self.hierarchy:
            return False
        for level in range(1, self.level + 1):
            a = own.above(level)
            if a is None or a.name == ROOT:
                break
            if within_partly(a.allocated.clone().add(needed), a.deserved, needed):
                return True
        return False

    def enqueueable(self, job: Job) -> int:
        queue = self.session.queues[job.queue]
        if not self._usable(queue):
            return REJECT
        if job.min_resources is None:
            return PERMIT
        for a in self._levels(queue):
            needed = job.minimum().add(a.allocated).add(a.inqueue).sub(a.elastic)
            if not needed.less_equal_requested(a.real_capability, job.minimum()):
                return REJECT
        return PERMIT

    def enqueued(self, job: Job) -> None:
        if job.min_resources is not None and self.ready:
            for a in self._levels(self.session.queues[job.queue]):
                a.inqueue.add(job.deduct_gated(job.minimum()))

    # --- victims

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], int]:
        if not self.ready:
            return [], REJECT
        mine = self.of[self.session.jobs[reclaimer.job].queue]
        left: dict[str, Resource] = {}
        victims = []
        order = victims_queue(self.session, candidates, reclaimer)
        while order:
            victim = order.pop()
            theirs = self.of[self.session.jobs[victim.job].queue]
            if not common(victim.resreq, reclaimer.resreq, but_pods=True):
                continue
            allocated = left.setdefault(theirs.name, theirs.allocated.clone())
            if not theirs.guarantee.less_equal(allocated.clone().sub(victim.resreq)):
                continue
            if not common(victim.resreq, theirs.deserved):
                if self.protected_by_hierarchy(reclaimer, mine, theirs):
                    continue
            elif not exceeds(allocated, theirs.deserved, victim.resreq):
                continue
            checked = self.checked_ancestors(mine, theirs)
            if any(self.is_entitled(a, left, victim) for a in checked):
                continue
            for a in [theirs, *checked]:
                left.setdefault(a.name, a.allocated.clone()).sub(victim.resreq)
            victims.append(victim)
        return victims, PERMIT

    def protected_by_hierarchy(self, reclaimer: Task, mine: Attributes, theirs: Attributes) -> bool:
        """Both are close in the tree, and the reclaimer's queue deserves nothing of the requested resources."""
        if not self.hierarchy or self.level == 0:
            return False
        near = [{a.name for a in q.ancestors[-self.level :]} - {ROOT} for q in (mine, theirs)]
        return bool(near[0] & near[1]) and not common(reclaimer.resreq, mine.deserved)

    def checked_ancestors(self, mine: Attributes, theirs: Attributes) -> list[Attributes]:
        found = []
        if self.hierarchy:
            for level in range(1, self.level + 1):
                a = theirs.above(level)
                if a is not None and a.name != ROOT and a is not mine.above(level):
                    found.append(a)
        return found

    def is_entitled(self, a: Attributes, left: dict[str, Resource], victim: Task) -> bool:
        if not common(victim.resreq, a.deserved):
            return False
        return not exceeds(left.get(a.name, a.allocated), a.deserved, victim.resreq)

    def unified(self, evictor: Any, candidates: list[Task]) -> tuple[list[Task] | None, int]:
        if evictor.kind == "gangpreempt":
            return candidates, PERMIT
        if not self.ready:
            return None, REJECT
        left: dict[str, Resource] = {}
        victims = []
        for victim in candidates:
            theirs = self.of[self.session.jobs[victim.job].queue]
            allocated = left.setdefault(theirs.name, theirs.allocated.clone())
            if not theirs.guarantee.less_equal(allocated.clone().sub(victim.resreq)):
                continue
            if not common(victim.resreq, theirs.deserved) or exceeds(allocated, theirs.deserved, victim.resreq):
                allocated.sub(victim.resreq)
                victims.append(victim)
        return victims, PERMIT

    # --- events

    def allocate(self, task: Task) -> None:
        for a in self._moved(task):
            a.allocated.add(task.resreq)
        self._leaf_share(task)

    def deallocate(self, task: Task) -> None:
        for a in self._moved(task):
            a.allocated.sub(task.resreq)
        self._leaf_share(task)

    def _leaf_share(self, task: Task) -> None:
        """The shares of ancestors are those of the session's opening."""
        if moved := self._moved(task):
            moved[0].update_share()

    def _moved(self, task: Task) -> list[Attributes]:
        return self._levels(self.session.queues[self.session.jobs[task.job].queue]) if self.ready else []


def compare_share(a: Attributes, b: Attributes) -> int:
    x, y = a.share, b.share
    if x != y:
        return -1 if x < y else 1
    if a.deserved.is_empty() == b.deserved.is_empty():
        return 0
    return 1 if a.deserved.is_empty() else -1


def common(a: Resource, b: Resource, but_pods: bool = False) -> bool:
    """Whether both have an amount of some resource."""
    return any(b.get(name) >= EPS for name in a.names() if not (but_pods and name == "pods"))


def exceeds(allocated: Resource, deserved: Resource, requested: Resource) -> bool:
    """Volcano: GreaterPartlyWithRelevantDimensions."""
    for name in ("cpu", "memory", *(requested.scalars or {})):
        if name == "pods" or requested.get(name) <= 0:
            continue
        relevant = deserved.get(name) >= EPS if name in ("cpu", "memory") else name in (deserved.scalars or {})
        if relevant and allocated.get(name) > deserved.get(name):
            return True
    return False


def within_partly(used: Resource, deserved: Resource, requested: Resource) -> bool:
    """Volcano: LessEqualPartlyWithDimensionZeroFiltered."""
    for name in ("cpu", "memory", *(requested.scalars or {})):
        if name == "pods" or requested.get(name) <= 0:
            continue
        a, b = used.get(name), deserved.get(name)
        if a < EPS and b < EPS:
            continue
        if a < b or abs(a - b) < EPS:
            return True
    return False
