"""The order in which victims are evicted. Volcano: BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Iterable
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

    queue: PriorityQueue[Task] = PriorityQueue(less)
    for task in victims:
        queue.push(task)
    return queue
