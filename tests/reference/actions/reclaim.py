"""reclaim: queues evict pods of other queues that hold more than their share."""

from __future__ import annotations

from tests.reference.cluster import Queue
from tests.reference.conf import get_bool
from tests.reference.heap import Heap
from tests.reference.job import Job
from tests.reference.node import NodeError
from tests.reference.placing import PredicateHelper, for_preemption, resolvable_nodes
from tests.reference.session import Session
from tests.reference.statement import Statement
from tests.reference.task import Task
from tests.reference.victims import are_enough, victims_queue
from tests.reference.votes import PredicateError


def reclaim(session: Session) -> None:
    votes = session.votes
    queues: Heap[Queue] = Heap(votes.queue_less)
    starving: dict[str, Heap[Job]] = {}
    tasks: dict[str, Heap[Task]] = {}
    for job in session.jobs.values():
        if job.is_pending() or not votes.job_valid(job):
            continue
        if job.queue not in starving:
            starving[job.queue] = Heap(votes.job_less)
            queues.push(session.queues[job.queue])
        if votes.job_starving(job):
            starving[job.queue].push(job)
            tasks[job.uid] = Heap(votes.task_less, [t for t in job.with_status("Pending") if not t.gated])
    while queues:
        queue = queues.pop()
        if votes.overused(queue):
            continue
        while starving[queue.name]:
            job = starving[queue.name].pop()
            statement = Statement(session)
            while votes.job_starving(job) and tasks[job.uid]:
                task = tasks[job.uid].pop()
                if task.pod["spec"].get("preemptionPolicy") == "Never":
                    continue
                if not votes.preemptive(queue, [task]):
                    continue
                try:
                    votes.pre_predicate(task)
                except PredicateError:
                    continue
                reclaim_for(session, statement, task)
            if votes.job_pipelined(job):
                statement.commit()
            else:
                statement.discard()


def reclaim_for(session: Session, statement: Statement, task: Task) -> None:
    arguments = session.conf.action_arguments("reclaim")
    helper = PredicateHelper(session, get_bool(arguments, "predicateErrorCacheEnable", True))
    for node in helper.predicate_nodes(task, resolvable_nodes(session, task), for_preemption(session)):
        candidates = [v for v in session.on_node(node) if _may_be_evicted(session, task, v)]
        if not candidates:
            continue
        victims = session.votes.reclaimable(task, candidates)
        if not are_enough(task, node, victims):
            continue
        room = node.future_idle()
        own = Statement(session)
        order = victims_queue(session, victims, task)
        while order and not task.resreq.less_equal(room):
            victim = order.pop()
            own.evict(victim)
            room.add(victim.resreq)
        if task.resreq.less_equal(room):
            try:
                own.pipeline(task, node, eviction_occurred=bool(own.steps))
            except NodeError:
                own.discard()
                continue
            statement.merge(own)
            return
        own.discard()


def _may_be_evicted(session: Session, task: Task, victim: Task) -> bool:
    queue = session.jobs[victim.job].queue
    if victim.status != "Running" or not victim.preemptable or queue == session.jobs[task.job].queue:
        return False
    return session.queues[queue].reclaimable
