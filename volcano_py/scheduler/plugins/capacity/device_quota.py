"""Quotas of devices: how many devices of a class, and how much of their capacity, a queue may hold. Volcano: the DRA
quota of capacity.

A claim that several pods of a queue share counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.device_amounts import DeviceAmount, DeviceAmounts, add, parse_amounts, requested
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueTree

ClaimAmounts = dict[str, DeviceAmounts]
"""The request of each claim of a task, by the claim's key."""


class DeviceQuota:
    """What one queue may hold, and what it holds."""

    def __init__(self, capability: DeviceAmounts) -> None:
        self.capability = capability
        """The limits by device class; other classes are not limited."""
        self.allocated: DeviceAmounts = {}
        self.inqueue: DeviceAmounts = {}
        """The requests of admitted jobs."""
        self._users: Counter[str] = Counter()

    def uses(self, claim: str) -> bool:
        """Whether a pod of the queue already has the claim."""
        return self._users[claim] > 0

    def take(self, claims: ClaimAmounts) -> None:
        """Count the claims of a pod that gets a node, except those that another pod of the queue has."""
        for key, amounts in claims.items():
            self._users[key] += 1
            if self._users[key] == 1:
                add(self.allocated, amounts)

    def give_back(self, claims: ClaimAmounts) -> None:
        """Undo `take`."""
        for key, amounts in claims.items():
            self._users[key] -= 1
            if self._users[key] == 0:
                add(self.allocated, amounts, -1)

    def new(self, claims: ClaimAmounts) -> DeviceAmounts:
        """The requests of claims that no pod of the queue has."""
        found: DeviceAmounts = {}
        for key, amounts in claims.items():
            if not self.uses(key):
                add(found, amounts)
        return found

    def allows(self, amounts: Mapping[str, DeviceAmount], with_capacity: bool, with_inqueue: bool) -> bool:
        """Whether the queue may hold these amounts as well. `with_inqueue`: together with the requests of admitted
        jobs."""
        for name, amount in amounts.items():
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
    """The quota of a queue; None if its spec contains no device class."""
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
        self._requests: dict[str, ClaimAmounts] = {}
        if self._quotas:
            for job in session.jobs.values():
                self._open(job)

    def _open(self, job: SessionJob) -> None:
        for task in job.tasks.values():
            if task.claims.devices is not None and st.IS_ALLOCATED[self._session.status(task)]:
                self.moved(task, job.queue, +1)
        if job.claims_minimum:
            self.enqueued(job)

    def requested_by(self, task: Task) -> ClaimAmounts:
        """The request of each claim of a task."""
        demand = task.claims.devices
        if demand is None:
            return {}
        found = self._requests.get(task.key)
        if found is None:
            found = self._requests[task.key] = {
                c.key: requested(c.claim, self._with_capacity) for c in demand.claims if c.claim is not None
            }
        return found

    def allocatable(self, task: Task, queue: str) -> bool:
        """Whether the queue and its ancestors may hold the claims of a task."""
        if not self._quotas or task.claims.devices is None:
            return True
        claims = self.requested_by(task)
        return all(q.allows(q.new(claims), self._with_capacity, with_inqueue=False) for q in self._upwards(queue))

    def enqueueable(self, job: SessionJob) -> bool:
        """Whether the queue and its ancestors may hold the minimum claims of a job, together with other admitted
        jobs."""
        least = self._least(job)
        return all(q.allows(least, self._with_capacity, with_inqueue=True) for q in self._upwards(job.queue))

    def enqueued(self, job: SessionJob) -> None:
        """Count an admitted job."""
        for quota in self._upwards(job.queue):
            add(quota.inqueue, self._least(job))

    def moved(self, task: Task, queue: str, sign: int) -> None:
        """Count a task that gets a node (+1) or leaves it (−1)."""
        if not self._quotas or task.claims.devices is None:
            return
        for quota in self._upwards(queue):
            (quota.take if sign > 0 else quota.give_back)(self.requested_by(task))

    def _upwards(self, queue: str) -> Iterable[DeviceQuota]:
        node = self._tree.nodes.get(queue)
        if node is None:
            return []
        return [self._quotas[q.name] for q in self._tree.upwards(node) if q.name in self._quotas]

    def _least(self, job: SessionJob) -> DeviceAmounts:
        if not self._quotas:
            return {}
        return least_of(job, [(t, self.requested_by(t)) for t in job.tasks.values()])


def least_of(job: SessionJob, tasks: Iterable[tuple[Task, ClaimAmounts]]) -> DeviceAmounts:
    """The sum of the requests of a job's minimum number of pods. Volcano: GetMinDRAResources.

    With `minTaskMember`: for each role, the request of its first pod times its minimum.
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
