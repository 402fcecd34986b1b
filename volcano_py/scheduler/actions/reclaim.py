"""reclaim: queues take back what others hold beyond their share. Volcano: action reclaim."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from volcano_py.scheduler.actions.task_queue import task_queue
from volcano_py.scheduler.framework.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.session import Session, by_name
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.framework.victims import victims_queue
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import ZERO
from volcano_py.scheduler.model.task import Task


def reclaim(session: Session) -> None:
    """Make room for starving jobs at the cost of other, reclaimable queues."""
    votes = session.votes
    queues: PriorityQueue[Queue] = PriorityQueue(votes.queue_before)
    starving: dict[str, list[tuple[tuple[Any, ...], SessionJob]]] = {}
    tasks: dict[str, list[Task]] = {}
    for job in session.jobs.values():
        if job.is_pending() or votes.job_valid(job) is not None:
            continue
        if job.queue not in starving:
            starving[job.queue] = []
            queues.push(session.queues[job.queue])
        if votes.job_starving(job):
            heapq.heappush(starving[job.queue], (votes.job_key(job), job))
            tasks[job.uid] = task_queue(votes, (t for t in session.pending(job) if not t.sched_gated))
    while queues:
        queue = queues.pop()
        if votes.overused(queue):
            continue
        waiting = starving[queue.name]
        while waiting:
            job = heapq.heappop(waiting)[1]
            statement = Statement(session, job.uid)
            todo = tasks[job.uid]
            while todo and votes.job_starving(job):
                task = todo.pop()
                if task.pod.spec.preemption_policy == "Never":
                    continue
                if not votes.preemptive(queue, [task]) or votes.pre_predicate(task) is not None:
                    continue
                _reclaim_for(session, statement, task)
            if votes.job_pipelined(job):
                statement.commit()
            else:
                statement.discard()


def _reclaim_for(session: Session, statement: Statement, task: Task) -> None:
    votes, placement = session.votes, session.placement
    mask = placement.resolvable(task)
    errors = session.jobs[task.job].fit_errors.get(task.key)
    if errors is not None and errors.unresolvable is not None:
        mask = mask & ~errors.unresolvable
    open_nodes = np.flatnonzero(mask)
    nodes: list[int] = open_nodes[np.argsort(by_name(session.cluster)[open_nodes])].tolist()
    shard = placement.shard
    if shard is not None:
        nodes.sort(key=lambda n: not shard[n])
    for node in nodes:
        candidates = [v for v in session.on_node(node) if _may_go(session, task, v)]
        if not candidates:
            continue
        victims = votes.reclaimable(task, candidates)
        if not session.fits_without(task, node, victims):
            continue
        free = session.future_idle(node)
        own = Statement(session, statement.beneficiary)
        order = victims_queue(session, victims, task)
        while order and not task.request.less_equal(free, ZERO):
            victim = order.pop()
            own.evict(victim, "reclaim")
            free.add(victim.request)
        fits = task.request.less_equal(free, ZERO)
        if fits and own.pipeline(task, node, evicted=own.evictions) is None:
            statement.merge(own)
            return
        own.discard()


def _may_go(session: Session, task: Task, victim: Task) -> bool:
    job = session.jobs.get(victim.job)
    return (
        job is not None
        and session.status(victim) == st.RUNNING
        and victim.preemptable
        and job.queue != session.jobs[task.job].queue
        and session.queues[job.queue].reclaimable
    )
