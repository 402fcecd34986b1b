"""backfill: places best-effort tasks, one by one. Volcano: the action backfill."""

from __future__ import annotations

from tests.reference.cluster import Queue
from tests.reference.heap import Heap
from tests.reference.job import Job
from tests.reference.messages import FitErrors, fit_errors
from tests.reference.node import NodeError
from tests.reference.placing import PredicateHelper, best_node
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError


def backfill(session: Session) -> None:
    for task in candidates(session):
        job = session.jobs[task.job]
        try:
            session.votes.pre_predicate(task)
        except PredicateError as e:
            job.fit_errors[task.uid] = fit_errors(dict.fromkeys(session.nodes, e))
            continue
        helper = PredicateHelper(session, error_cache=True)
        fit = helper.predicate_nodes(task, list(session.nodes.values()), session.votes.predicate)
        node = best_node(session, task, fit)
        if node is None:
            job.fit_errors[task.uid] = fit_errors(helper.rejected)
            continue
        try:
            session.allocate(task, node)
        except NodeError as e:
            job.fit_errors[task.uid] = FitErrors(str(e))


def candidates(session: Session) -> list[Task]:
    votes = session.votes
    queues: Heap[Queue] = Heap(votes.queue_less)
    jobs: dict[str, Heap[Job]] = {}
    tasks: dict[str, Heap[Task]] = {}
    for job in session.jobs.values():
        if job.is_pending() or not votes.job_valid(job):
            continue
        for task in job.with_status("Pipelined"):
            if task.best_effort:
                session.unplace(task)
        waiting = [t for t in job.with_status("Pending") if t.best_effort and not t.gated]
        if not waiting:
            continue
        tasks[job.uid] = Heap(votes.task_less, waiting)
        if job.queue not in jobs:
            jobs[job.queue] = Heap(votes.job_less)
            queues.push(session.queues[job.queue])
        jobs[job.queue].push(job)
    found = []
    while queues:
        of_queue = jobs[queues.pop().name]
        while of_queue:
            of_job = tasks[of_queue.pop().uid]
            while of_job:
                found.append(of_job.pop())
    return found
