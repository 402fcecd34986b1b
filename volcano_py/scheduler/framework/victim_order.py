"""The order in which victims are evicted. Volcano: BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model.task import Task


def victims_queue(session: Session, victims: Iterable[Task], preemptor: Task) -> PriorityQueue[Task]:
    """A heap of victims: the one with the least loss is popped first.

    Of one job: the task that would be placed last. Between jobs of the preemptor's queue: the job that would
    be served last. Between queues: the order of the plugins. Tasks whose job is not in the session come first.
    A heap compares most elements repeatedly: sort keys are kept until a task of the session moves.
    """
    jobs, log = session.jobs, session.numbers.log
    mine = jobs.get(preemptor.job)
    ranks: dict[str, tuple[Any, ...]] = {}
    task_keys: dict[str, tuple[Any, ...]] = {}
    position = log.position

    def rank(job: SessionJob) -> tuple[Any, ...]:
        found = ranks.get(job.uid)
        if found is None:
            found = ranks[job.uid] = session.job_rank(job)
        return found

    def task_key(task: Task) -> tuple[Any, ...]:
        found = task_keys.get(task.key)
        if found is None:
            found = task_keys[task.key] = session.task_key(task)
        return found

    def less(left: Task, right: Task) -> bool:
        nonlocal position
        if log.position != position:  # a task has moved, and the keys are outdated
            position = log.position
            ranks.clear()
            task_keys.clear()
        if left.job == right.job:
            return not session.task_before(left, right, task_key)
        a, b = jobs.get(left.job), jobs.get(right.job)
        if a is None or b is None:
            if a is None and b is None:
                return not session.task_before(left, right, task_key)
            return a is None
        if mine is None or a.queue == b.queue:
            first, second = rank(a), rank(b)
            return first > second if first != second else not session.task_before(left, right, task_key)
        return session.victim_queue_before(session.queues[a.queue], session.queues[b.queue], session.queues[mine.queue])

    queue: PriorityQueue[Task] = PriorityQueue(less)
    for task in victims:
        queue.push(task)
    return queue
