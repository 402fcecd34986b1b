"""Extension points about what a queue may hold. Volcano: Overused, Allocatable, Preemptive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from volcano_py.scheduler.framework.callbacks import Callbacks, Fault
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource


class Loan(NamedTuple):
    """A question about queues: may a unit of one queue, the lender, be evicted for a gang of another one?"""

    queue: Queue
    """The queue of the gang."""
    requested: Resource
    """What the members request that the gang still lacks."""
    short: frozenset[str]
    """The requested resources for which the gang, requesting each of them alone, does not fit."""
    lender: Queue
    unit: Resource
    """What the pods request that would be evicted together: a whole job, or a pod above the minimum of its job."""


class QueueLimit(NamedTuple):
    """A limit of what pods of a queue, together with those of the queues below it, may hold."""

    queue: str
    left: Mapping[str, float]
    """What they may hold in addition, by resource; below 0: they hold more than it. Others have no limit."""


AmountsLeft = Callable[[Queue, Sequence[str]], Sequence[QueueLimit]]
"""(queue, names of resources) → the limits that count for its pods."""

HowMany = Callable[[Queue, Task, int], int]
"""(queue, task, limit) → number of tasks."""


class QueueLimits:
    """The decisions of plugins that share the cluster among queues."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self._how_many: dict[str, HowMany] = {}
        self._left: dict[str, AmountsLeft] = {}

    def add_overused(self, fn: Callable[[Queue], bool]) -> None:
        """Whether a queue holds its share, so that nothing more is allocated to it in this cycle.

        Called: by allocate, reclaim and gangreclaim, before each job of the queue.
        Combination: the queue is overused if one plugin returns true.
        Flag: enabledOverused.
        On error: the queue is overused.
        """
        self.callbacks.add("overused", fn)

    def overused(self, queue: Queue) -> bool:
        """Whether nothing more is allocated to the queue in this cycle."""
        return self.callbacks.any("overused", queue)

    def add_allocatable(
        self, fn: Callable[[Queue, Task], bool], *, how_many: HowMany | None = None, left: AmountsLeft | None = None
    ) -> None:
        """Whether a queue may hold one more task.

        `how_many` is a hint that makes gangs faster: for how many equal tasks, one after the other and up to the limit,
        `fn` would return true. `left` answers for amounts, so that reservations know from when on a queue may hold a
        gang: the limits of the queue and of those above it.

        Called: before each task that is placed or for which pods are evicted.
        Combination: all plugins agree.
        Flag: enabledAllocatable.
        On error: it may not.
        """
        self.callbacks.add("allocatable", fn)
        if how_many is not None:
            self._how_many[self.callbacks.plugin] = how_many
        if left is not None:
            self._left[self.callbacks.plugin] = left

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may hold one more task."""
        return self.callbacks.all("allocatable", queue, task)

    def how_many_allocatable(self, queue: Queue, task: Task, limit: int) -> int:
        """How many tasks equal to this one the queue may hold in addition, up to `limit`; 0: unknown, call
        `allocatable` for each."""
        for plugin, _, _ in self.callbacks.enabled("allocatable"):
            if plugin not in self._how_many:
                return 0
            limit = min(limit, self._how_many[plugin](queue, task, limit))
        return limit

    def left(self, queue: Queue, names: Sequence[str]) -> list[QueueLimit]:
        """The limits of all plugins that count for pods of the queue; plugins that answer only for tasks are not part
        of it."""
        found: list[QueueLimit] = []
        for plugin, _, _ in self.callbacks.enabled("allocatable"):
            if plugin not in self._left:
                continue
            try:
                found += self._left[plugin](queue, names)
            except Exception as e:
                self.callbacks.fault(plugin, "allocatable", e, queue.name)
                found.append(QueueLimit(queue.name, dict.fromkeys(names, 0.0)))
        return found

    def add_simulate_allocatable(self, fn: Callable[[Queue, Task], bool]) -> None:
        """As add_allocatable, within a dry run of topology-aware preemption, where closed queues count as open.

        Called: after each simulated eviction.
        Combination: all plugins agree.
        Flag: enabledAllocatable.
        On error: it may not.
        """
        self.callbacks.add("simulate_allocatable", fn)

    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may hold one more task, within a dry run."""
        return self.callbacks.all("simulate_allocatable", queue, task)

    def add_preemptive(self, fn: Callable[[Queue, Sequence[Task]], bool]) -> None:
        """Whether a queue may reclaim capacity from other queues for these tasks.

        Called: by reclaim and gangreclaim, before they look for victims.
        Combination: all plugins agree.
        Flag: enablePreemptive.
        On error: it may not.
        """
        self.callbacks.add("preemptive", fn)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Whether the queue may reclaim capacity from other queues for these tasks."""
        return self.callbacks.all("preemptive", queue, tasks)

    def add_entitled(self, fn: Callable[[str, Resource], bool]) -> None:
        """Whether an amount, added to what a queue holds, is within what the queue is entitled to.

        Called: by plugins that limit admission (overcommit), with the queue's name and the job's minResources.
        Combination: the first plugin decides; without any: no.
        Flag: none.
        On error: no.
        """
        self.callbacks.add("entitled", fn)

    def entitled(self, queue: str, requested: Resource) -> bool:
        """Whether the queue is entitled to this amount in addition to what it holds."""
        for _, answer in self.callbacks.answers("entitled", queue, requested):
            return bool(answer) and not isinstance(answer, Fault)
        return False

    def add_lends(self, fn: Callable[[Loan], float | None]) -> None:
        """Whether a unit of a lender may be evicted for a gang, and at what price: how much further below what it
        deserves the lender then is, as a part of the cluster; None: it must not.

        Called: by reclaim (deviation whole-gang-reclaim), before each unit is evicted, while the evictions before it
        count as done.
        Combination: all plugins agree, the highest price counts; without any plugin reclaim decides as Volcano.
        Flag: enableReclaimable.
        On error: it must not.
        """
        self.callbacks.add("lends", fn)

    def lends(self, loan: Loan) -> float | None:
        """The price of a unit; None: it must not be evicted."""
        highest = 0.0
        for plugin, fn, _ in self.callbacks.enabled("lends"):
            try:
                price = fn(loan)
            except Exception as e:
                self.callbacks.fault(plugin, "lends", e, loan.queue.name)
                return None
            if price is None:
                return None
            highest = max(highest, price)
        return highest

    @property
    def has_lenders(self) -> bool:
        """Whether a plugin decides what may be evicted for an entitled gang."""
        return bool(self.callbacks.enabled("lends"))

    @property
    def sharing(self) -> frozenset[str]:
        """The plugins that compute what a queue holds beyond its share: those with preemptive or overused."""
        return frozenset(c.plugin for point in ("preemptive", "overused") for c in self.callbacks.enabled(point))
