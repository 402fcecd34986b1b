"""The order in which victims are evicted. Volcano: BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.extension_points.orders import TaskRank
from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model.task import Task


class _Position(NamedTuple):
    """What the order of a victim depends on."""

    job: str
    in_session: SessionJob | None
    rank: tuple[Any, ...]
    """The keys of its job."""
    task: TaskRank


def victims_queue(session: Session, victims: Iterable[Task], preemptor: Task) -> PriorityQueue[Task]:
    """A heap of victims: the one with the least loss is popped first.

    Of one job: the task that would be placed last. Between jobs of the preemptor's queue: the job that would
    be served last. Between queues: the order of the plugins. Tasks whose job is not in the session come first.
    A heap compares most elements repeatedly: positions are kept until a task of the session moves.
    """
    jobs, log, queues = session.jobs, session.numbers.log, session.queues
    mine = jobs.get(preemptor.job)
    ranks: dict[str, tuple[Any, ...]] = {}
    known: dict[str, _Position] = {}
    position = log.position

    def position_of(task: Task) -> _Position:
        job = jobs.get(task.job)
        rank = ranks.get(task.job)
        if rank is None:
            rank = ranks[task.job] = () if job is None else session.job_rank(job)
        found = known[task.key] = _Position(task.job, job, rank, session.task_rank(task))
        return found

    def less(left: Task, right: Task) -> bool:
        nonlocal position
        if log.position != position:  # a task has moved, and the keys are outdated
            position = log.position
            ranks.clear()
            known.clear()
        a, b = known.get(left.key) or position_of(left), known.get(right.key) or position_of(right)
        if a.job == b.job:
            return not a.task.before(b.task)
        one, other = a.in_session, b.in_session
        if one is None or other is None:
            return not a.task.before(b.task) if one is other else one is None
        if mine is None or one.queue == other.queue:
            return a.rank > b.rank if a.rank != b.rank else not a.task.before(b.task)
        return session.victim_queue_before(queues[one.queue], queues[other.queue], queues[mine.queue])

    waiting = list(victims)
    positions = [position_of(task) for task in waiting]
    if _sortable(positions, queues_count=mine is not None):
        return PriorityQueue(less, _heap(waiting, positions))
    queue: PriorityQueue[Task] = PriorityQueue(less)
    for task in waiting:
        queue.push(task)
    return queue


def _sortable(positions: list[_Position], queues_count: bool) -> bool:
    """Whether sort keys give the order of the victims: they are in one queue, or queues do not count, and all of them
    have a number or none has."""
    jobs = [p.in_session for p in positions]
    queues = {job.queue for job in jobs if job is not None}
    numbered = sum(p.task.number is not None for p in positions)
    one_queue = None not in jobs and (len(queues) == 1 or not queues_count)
    return one_queue and numbered in (0, len(positions))


def _heap(victims: list[Task], positions: list[_Position]) -> list[Task]:
    """The heap that results if the victims are pushed one after another, without a comparison of each pair.

    The arrangement counts, because the order of victims can change while they wait.
    """
    in_order = sorted(
        range(len(victims)),
        key=lambda i: (positions[i].rank, positions[i].task.key, positions[i].task.number, positions[i].task.rest),
        reverse=True,
    )
    place = [0] * len(victims)
    for at, i in enumerate(in_order):
        place[i] = at
    heap: list[int] = []
    for at in place:
        heappush(heap, at)
    return [victims[in_order[at]] for at in heap]
