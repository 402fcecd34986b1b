"""The order of victims, and whether they are sufficient. Volcano: BuildVictimsPriorityQueue, ValidateVictims."""

from __future__ import annotations

from tests.reference.heap import Heap
from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task


def victims_queue(session: Session, victims: list[Task], preemptor: Task) -> Heap[Task]:
    votes, jobs, queues = session.votes, session.jobs, session.queues

    def less(left: Task, right: Task) -> bool:
        if left.job == right.job:
            return not votes.task_less(left, right)
        a, b = jobs[left.job], jobs[right.job]
        if a.queue == b.queue:
            order = votes.job_compare(a, b)
            return order > 0 if order != 0 else not votes.task_less(left, right)
        return votes.victim_queue_less(queues[a.queue], queues[b.queue], queues[jobs[preemptor.job].queue])

    return Heap(less, victims)


def are_enough(preemptor: Task, node: Node, victims: list[Task]) -> bool:
    room = node.future_idle()
    for victim in victims:
        room.add(victim.resreq)
    return preemptor.resreq.less_equal(room)
