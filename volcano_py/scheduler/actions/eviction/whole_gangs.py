"""Whole gangs as victims of an entitled gang: reclaim where single pods do not suffice (deviation whole-gang-reclaim).

A gang in a queue below its deserved share would never be placed if everything that other queues hold beyond their
shares belongs to gangs at their minimum, because reclaim evicts no single pod of these. In Volcano only gangreclaim
evicts such gangs. Here reclaim also evicts the cheapest bundle of them, never below what their own queue deserves.
"""

from __future__ import annotations

from collections.abc import Callable

from volcano_py.scheduler.actions.eviction.bundles import Bundle, requests
from volcano_py.scheduler.actions.eviction.gangs import (
    GangEvictionArguments,
    Policy,
    evict_for_gang,
    wanted_by_gang,
)
from volcano_py.scheduler.actions.task_queue import task_queue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import PODS
from volcano_py.scheduler.model.task import Task

Shape = tuple[str, tuple[tuple[int, int], ...]]
"""The queue of a gang, and how many tasks of each class it lacks."""


class WholeGangReclaim:
    """One execution of reclaim. A gang for which no victims were found is not tried again, nor are gangs of the same
    shape."""

    def __init__(self, session: Session, may_evict: Callable[[Session, SessionJob, Task], bool]) -> None:
        self._session = session
        self._policy = Policy(
            "reclaim", may_evict, _by_queue, reclaims=True, allowed=_above_their_shares, prefers=_useful
        )
        self._tried: set[Shape] = set()

    def reclaim_for(self, job: SessionJob) -> bool:
        """Evict whole gangs for the missing minimum of a starving gang; returns whether that was possible."""
        session = self._session
        lacking = job.min_available - job.ready_num
        if lacking < 1 or job.has_topology or not session.keeps_gangs("reclaimable"):
            return False
        todo = task_queue(session, (t for t in session.pending(job) if wanted_by_gang(t)))[-lacking:]
        if any(t.pod.spec.preemption_policy == "Never" for t in todo):
            return False
        shape = _shape(job, todo)
        if shape in self._tried:
            return False
        needed = {t.slot for t in todo}
        queue = session.queues[job.queue]
        found = evict_for_gang(
            session, self._policy, GangEvictionArguments(), queue, job, lambda task: task.slot in needed
        )
        if not found:
            self._tried.add(shape)
        return found


def _shape(job: SessionJob, tasks: list[Task]) -> Shape:
    counts: dict[int, int] = {}
    for task in tasks:
        counts[task.spec_class.id] = counts.get(task.spec_class.id, 0) + 1
    return job.queue, tuple(sorted(counts.items()))


def _by_queue(session: Session, left: SessionJob, right: SessionJob, job: SessionJob) -> bool:
    queues = session.queues
    return session.victim_queue_before(queues[left.queue], queues[right.queue], queues[job.queue])


def _useful(session: Session, job: SessionJob, need: Resource) -> Callable[[Task], int]:
    """Where only some tasks of a job are above its minimum, which of them serve a gang: 0 if a task of the gang fits on
    the node once that one is evicted, 1 if the node accepts a task of the gang, 2 if it only requests what is needed;
    3 if its queue cannot lose it, a plugin protects it, or it requests nothing that is needed."""
    wanted = list({task.spec_class.id: task for task in session.pending(job) if wanted_by_gang(task)}.values())
    accepting = [session.placement.resolvable(task) for task in wanted]

    def rank(task: Task) -> int:
        node, of = session.node_of(task), session.queues[session.jobs[task.job].queue]
        if not session.can_lose(of, task.request, session.queues[job.queue]) or not session.unprotected([task]):
            return 3
        served = [mine for mine, nodes in zip(wanted, accepting, strict=True) if node is not None and nodes[node]]
        if any(_is_enough(session, mine, task, node) for mine in served if node is not None):
            return 0
        if any(need[name] > 0 for name, amount in task.request.as_dict().items() if amount > 0 and name != PODS):
            return 1 if served else 2
        return 3

    return rank


def _is_enough(session: Session, wanted: Task, victim: Task, node: int) -> bool:
    """Whether the victim's node has capacity for a task without the victim, but not with it. What is missing can be
    the capacity for one more pod."""
    return session.fits_without(wanted, node, [victim]) and not session.fits_without(wanted, node, ())


def _above_their_shares(session: Session, job: SessionJob, bundles: list[Bundle]) -> set[str]:
    """The tasks of the bundles that their queues can lose together and still hold what they deserve. Budgets permit all
    of them together."""
    units = [
        (bundle.job.queue, unit)
        for bundle in bundles
        for unit in ([bundle.tasks] if bundle.whole else [[task] for task in bundle.tasks])
        if len(session.unprotected(unit)) == len(unit)
    ]
    # a disruption budget permits each of several units, but not all of them together
    together = session.unprotected(list({task.uid: task for _, unit in units for task in unit}.values()))
    permitted = {task.uid for task in together}
    lost: dict[str, Resource] = {}
    allowed: set[str] = set()
    for name, unit in units:
        if any(task.uid not in permitted for task in unit):
            continue
        rest = (task for task in unit if task.uid not in allowed)  # a whole gang includes its single tasks
        amount = requests(rest).add(lost.get(name, Resource()))
        if session.can_lose(session.queues[name], amount, session.queues[job.queue]):
            lost[name] = amount
            allowed.update(task.uid for task in unit)
    return allowed
