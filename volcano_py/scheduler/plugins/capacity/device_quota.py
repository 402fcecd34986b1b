"""Quotas of devices: how many devices of a class, and how much of their capacity, a queue may hold. Volcano: the DRA
quota of capacity.

A claim that several pods of a queue share counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.device_amounts import DeviceAmount, DeviceAmounts, add, parse_amounts, requested
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueTree

ClaimAmounts = dict[str, DeviceAmounts]
"""What each claim of a task requests, by the claim's key."""


class DeviceQuota:
    """What one queue may hold and holds."""

    def __init__(self, capability: DeviceAmounts) -> None:
        self.capability = capability
        """Classes that are not named here are not limited."""
        self.allocated: DeviceAmounts = {}
        self.inqueue: DeviceAmounts = {}
        """What admitted jobs request."""
        self._users: Counter[str] = Counter()

    def uses(self, claim: str) -> bool:
        """Whether a pod of the queue has the claim already."""
        return self._users[claim] > 0

    def take(self, claims: ClaimAmounts) -> None:
        """A pod gets a node: claims that no other pod of the queue has are counted."""
        for key, amounts in claims.items():
            self._users[key] += 1
            if self._users[key] == 1:
                add(self.allocated, amounts)

    def give_back(self, claims: ClaimAmounts) -> None:
        """The opposite of `take`."""
        for key, amounts in claims.items():
            self._users[key] -= 1
            if self._users[key] == 0:
                add(self.allocated, amounts, -1)

    def new(self, claims: ClaimAmounts) -> DeviceAmounts:
        """What claims request that no pod of the queue has."""
        found: DeviceAmounts = {}
        for key, amounts in claims.items():
            if not self.uses(key):
                add(found, amounts)
        return found

    def allows(self, wanted: Mapping[str, DeviceAmount], with_capacity: bool, with_inqueue: bool) -> bool:
        """Whether the queue may hold more. `with_inqueue`: beside what admitted jobs request."""
        for name, amount in wanted.items():
            limit = self.capability.get(name)
            if limit is None:
                continue
            nothing = DeviceAmount()
            held = [self.allocated.get(name, nothing)] + ([self.inqueue.get(name, nothing)] if with_inqueue else [])
            if limit.count > 0 and sum(h.count for h in held) + amount.count > limit.count:
                return False
            for dimension, much in amount.capacity.items() if with_capacity else ():
                most = limit.capacity.get(dimension)
                if most is None or sum((h.capacity.get(dimension, Fraction()) for h in held), much) > most:
                    return False
        return True


def quota_of(queue: Queue) -> DeviceQuota | None:
    """The quota of a queue; None if its spec names no device class."""
    spec = queue.object.spec
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    capability = parse_amounts(spec.capability)
    return DeviceQuota(capability) if capability or parse_amounts(spec.deserved) or parse_amounts(guarantee) else None


class DeviceQuotas:
    """The quotas of all queues of a session."""

    def __init__(self, session: Session, tree: QueueTree, with_capacity: bool) -> None:
        self._session = session
        self._tree = tree
        self._with_capacity = with_capacity
        found = {name: quota_of(node.queue) for name, node in tree.nodes.items()}
        self._quotas = {name: quota for name, quota in found.items() if quota is not None}
        self._asked: dict[str, ClaimAmounts] = {}
        if self._quotas:
            for job in session.jobs.values():
                self._open(job)

    def _open(self, job: SessionJob) -> None:
        for task in job.tasks.values():
            if task.claims.devices is not None and st.IS_ALLOCATED[self._session.status(task)]:
                self.moved(task, job.queue, +1)
        if job.pod_group.status.phase == "Inqueue":
            self.enqueued(job)

    def requested(self, task: Task) -> ClaimAmounts:
        """What each claim of a task requests."""
        demand = task.claims.devices
        if demand is None:
            return {}
        found = self._asked.get(task.key)
        if found is None:
            found = self._asked[task.key] = {
                c.key: requested(c.claim, self._with_capacity) for c in demand.claims if c.claim is not None
            }
        return found

    def allocatable(self, task: Task, queue: str) -> bool:
        """Whether the queue and those above may hold what a task claims."""
        if not self._quotas or task.claims.devices is None:
            return True
        claims = self.requested(task)
        return all(q.allows(q.new(claims), self._with_capacity, with_inqueue=False) for q in self._upwards(queue))

    def enqueueable(self, job: SessionJob) -> bool:
        """Whether the queue and those above may hold the least that a job claims, beside other admitted jobs."""
        least = self._least(job)
        return all(q.allows(least, self._with_capacity, with_inqueue=True) for q in self._upwards(job.queue))

    def enqueued(self, job: SessionJob) -> None:
        """A job is admitted."""
        for quota in self._upwards(job.queue):
            add(quota.inqueue, self._least(job))

    def moved(self, task: Task, queue: str, sign: int) -> None:
        """A task gets a node (+1) or loses it."""
        if not self._quotas or task.claims.devices is None:
            return
        for quota in self._upwards(queue):
            (quota.take if sign > 0 else quota.give_back)(self.requested(task))

    def _upwards(self, queue: str) -> Iterable[DeviceQuota]:
        node = self._tree.nodes.get(queue)
        if node is None:
            return []
        return [self._quotas[q.name] for q in self._tree.upwards(node) if q.name in self._quotas]

    def _least(self, job: SessionJob) -> DeviceAmounts:
        if not self._quotas:
            return {}
        return least_of(job, [(t, self.requested(t)) for t in job.tasks.values()])


def least_of(job: SessionJob, tasks: Iterable[tuple[Task, ClaimAmounts]]) -> DeviceAmounts:
    """What the least number of a job's pods request. Volcano: GetMinDRAResources.

    With `minTaskMember`: of each role, the request of its first pod times its minimum.
    """
    found: DeviceAmounts = {}
    claiming = [(task, amounts) for task, amounts in tasks if amounts]
    if job.task_min_available:
        seen: set[str] = set()
        for task, amounts in claiming:
            if task.role not in seen:
                seen.add(task.role)
                for of_claim in amounts.values():
                    add(found, of_claim, job.task_min_available.get(task.role, 0))
        return found
    in_order = sorted(claiming, key=lambda entry: (entry[0].namespace, entry[0].name, entry[0].uid))
    for _, amounts in in_order[: max(0, job.min_available)]:
        for of_claim in amounts.values():
            add(found, of_claim)
    return found
