"""The order in which victims are evicted. Volcano: BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.task import Task


def victims_queue(session: Session, victims: Iterable[Task], preemptor: Task) -> PriorityQueue[Task]:
    """A heap of victims: the one with the least loss is popped first.

    Of one job: the task that would be placed last. Between jobs of the preemptor's queue: the job that would
    be served last. Between queues: what the plugins say. Tasks whose job is not in the session go first.
    """
    jobs = session.jobs
    mine = jobs.get(preemptor.job)

    def less(left: Task, right: Task) -> bool:
        if left.job == right.job:
            return not session.task_before(left, right)
        a, b = jobs.get(left.job), jobs.get(right.job)
        if a is None or b is None:
            if a is None and b is None:
                return not session.task_before(left, right)
            return a is None
        if mine is None or a.queue == b.queue:
            order = session.job_compare(a, b)
            return order > 0 if order else not session.task_before(left, right)
        return session.victim_queue_before(session.queues[a.queue], session.queues[b.queue], session.queues[mine.queue])

    queue: PriorityQueue[Task] = PriorityQueue(less)
    for task in victims:
        queue.push(task)
    return queue
