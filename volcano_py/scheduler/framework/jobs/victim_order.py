"""The order in which victims are evicted. Volcano: BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush
from typing import Any

from volcano_py.scheduler.framework.extension_points.orders import TaskRank
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task

_Rank = tuple[Any, ...]


def victims_queue(session: Session, victims: Iterable[Task], preemptor: Task) -> PriorityQueue[Task]:
    """A heap of victims: the one with the least loss is popped first.

    Of one job: the task that would be placed last. Between jobs of the preemptor's queue: the job that would
    be served last. Between queues: the order of the plugins. Tasks whose job is not in the session come first.
    A heap compares most elements repeatedly: the ranks of jobs are kept until a task of the session moves.
    """
    jobs, log, queues = session.jobs, session.numbers.log, session.queues
    mine = jobs.get(preemptor.job)
    known_jobs: dict[str, tuple[SessionJob | None, _Rank]] = {}
    known_tasks: dict[str, TaskRank] = {}
    position = log.position

    def job_of(uid: str) -> tuple[SessionJob | None, _Rank]:
        job = jobs.get(uid)
        found = known_jobs[uid] = job, () if job is None else session.orders.job_rank(job)
        return found

    def rank_of(task: Task) -> TaskRank:
        found = known_tasks[task.key] = session.orders.task_rank(task)
        return found

    def less(left: Task, right: Task) -> bool:
        nonlocal position
        if log.position != position:  # a task has moved, and the ranks of jobs are outdated
            position = log.position
            known_jobs.clear()
            if session.orders.task_order_moves:
                known_tasks.clear()
        if left.job != right.job:
            one, first = known_jobs.get(left.job) or job_of(left.job)
            other, second = known_jobs.get(right.job) or job_of(right.job)
            if one is not other and (one is None or other is None):
                return one is None
            if one is not None and other is not None:
                if mine is not None and one.queue != other.queue:
                    return session.orders.victim_queue_before(
                        queues[one.queue], queues[other.queue], queues[mine.queue]
                    )
                if first != second:
                    return first > second
        a, b = known_tasks.get(left.key) or rank_of(left), known_tasks.get(right.key) or rank_of(right)
        return not a.before(b)

    waiting = list(victims)
    found = [known_jobs.get(task.job) or job_of(task.job) for task in waiting]
    if _sortable(waiting, [job for job, _ in found], queues_count=mine is not None):
        key = session.orders.task_key
        ranks = [(rank, key(t), t.index, t.created, t.uid) for t, (_, rank) in zip(waiting, found, strict=True)]
        return PriorityQueue(less, _heap(waiting, ranks))
    queue: PriorityQueue[Task] = PriorityQueue(less)
    for task in waiting:
        queue.push(task)
    return queue


def _sortable(victims: list[Task], jobs: list[SessionJob | None], queues_count: bool) -> bool:
    """Whether sort keys give the order of the victims: they are in one queue, or queues do not count, and all of them
    have a number or none has. `jobs`: of each victim."""
    queues = {None if job is None else job.queue for job in jobs}
    numbered = sum(task.index is not None for task in victims)
    return None not in queues and (len(queues) == 1 or not queues_count) and numbered in (0, len(victims))


def _heap(victims: list[Task], ranks: list[_Rank]) -> list[Task]:
    """The heap that results if the victims are pushed one after another, without a comparison of each pair.

    The arrangement counts, because the order of victims can change while they wait. `ranks`: of each victim; the
    highest is popped first.
    """
    in_order = sorted(range(len(victims)), key=ranks.__getitem__, reverse=True)
    place = [0] * len(victims)
    for at, i in enumerate(in_order):
        place[i] = at
    heap: list[int] = []
    for at in place:
        heappush(heap, at)
    return [victims[in_order[at]] for at in heap]
