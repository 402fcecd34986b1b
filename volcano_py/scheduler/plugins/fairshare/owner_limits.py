"""What an owner may hold while another owner of its queue waits that has used less. Not in Volcano.

The order alone cannot return what a heavy user holds already: long jobs that came first keep the queue. With a limit,
an owner that has used more than one that waits starts nothing beyond `limit` times its deserved share: its weight
among the owners of the queue that hold or want something, times the weight of the queue among its siblings that do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from volcano_py.scheduler.explain.table import OWNER_LIMIT
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.queue_parents import path_of
from volcano_py.scheduler.plugins.fairshare.usage import Owner

_ROUNDING = 1e-9


class OwnerLimits:
    """Of one session. `level`: the usage of an owner by its weight."""

    def __init__(
        self,
        session: Session,
        limit: float,
        held: Mapping[Owner, float],
        owner_of: Callable[[SessionJob], Owner],
        weight_of: Callable[[Owner], float],
        level: Callable[[Owner], float],
        share_of: Callable[[Task], float],
    ) -> None:
        self._session, self._limit = session, limit
        self._owner_of, self._weight_of, self._level, self._share_of = owner_of, weight_of, level, share_of
        self._held: dict[Owner, float] = defaultdict(float, held)
        self._waiting: dict[Owner, list[SessionJob]] = defaultdict(list)
        self._of_queue: dict[str, set[Owner]] = defaultdict(set)
        """The owners that hold or want something."""
        for owner, amount in held.items():
            if amount > 0:
                self._of_queue[owner.queue].add(owner)
        self._enqueue_is_on = "enqueue" in session.configuration.actions
        for job in session.jobs.active():
            if job.counts[st.PENDING]:
                owner = owner_of(job)
                self._waiting[owner].append(job)
                self._of_queue[owner.queue].add(owner)
        self._queues: dict[str, float] = {}

    def permits(self, queue: Queue, task: Task) -> bool:
        """Whether the owner of a task may hold it in addition."""
        job = self._session.jobs.get(task.job)
        if job is None:
            return True
        owner = self._owner_of(job)
        after = self._held[owner] + self._share_of(task)
        deserved = self._deserved(owner)
        if after <= self._limit * deserved + _ROUNDING:
            return True
        other = self._who_waits(owner)
        if other is None:
            return True
        limit = f"{self._limit * deserved:.0%}"
        cause = OWNER_LIMIT.because(owner=owner.name, held=f"{self._held[owner]:.0%}", limit=limit, other=other.name)
        job.block(cause)
        return False

    def moved(self, task: Task, count: int) -> None:
        """The session has placed tasks equal to this one, or removed them (below 0)."""
        job = self._session.jobs.get(task.job)
        if job is not None:
            self._held[self._owner_of(job)] += count * self._share_of(task)

    def _who_waits(self, owner: Owner) -> Owner | None:
        """Another owner of the queue that has used less, and has a job that waits; the one that has used least."""
        mine = self._level(owner)
        found = [
            (self._level(other), other)
            for other in self._of_queue[owner.queue]
            if other != owner and any(map(self._waits, self._waiting.get(other, ())))
        ]
        least = min(found, default=None)
        return least[1] if least is not None and least[0] < mine - _ROUNDING else None

    def _waits(self, job: SessionJob) -> bool:
        """Whether the job is admitted and has pods that are not placed."""
        return bool(job.counts[st.PENDING]) and not (job.is_pending() and self._enqueue_is_on)

    def _deserved(self, owner: Owner) -> float:
        """The owner's share of the cluster by the weights of owners and queues."""
        owners = {owner, *self._of_queue[owner.queue]}
        return self._of(owner.queue) * self._weight_of(owner) / sum(self._weight_of(other) for other in owners)

    def _of(self, queue: str) -> float:
        """The queue's share of the cluster by weights, among the queues that hold or want something."""
        if queue not in self._queues:
            session, parents = self._session, self._session.queue_parents
            used = {name for name, owners in self._of_queue.items() if owners} | {queue}
            paths = {above for name in used for above in path_of(name, parents)}
            share = 1.0
            for name in path_of(queue, parents):
                siblings = [each for each in paths if parents.get(each, "") == parents.get(name, "")]
                weights = {each: max(session.queues[each].weight, 1) for each in siblings if each in session.queues}
                share *= weights.get(name, 1) / max(1, sum(weights.values()))
            self._queues[queue] = share
        return self._queues[queue]
