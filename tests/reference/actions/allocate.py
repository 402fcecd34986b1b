"""Give jobs their places: the path of jobs without HyperNodes and sub-groups."""

from __future__ import annotations

from tests.reference.cluster import Queue
from tests.reference.conf import get_bool
from tests.reference.heap import Heap
from tests.reference.job import Job
from tests.reference.node import Node
from tests.reference.placing import PredicateHelper, best_node
from tests.reference.session import Session
from tests.reference.statement import Statement
from tests.reference.task import Task
from tests.reference.votes import PredicateError


def allocate(session: Session) -> None:
    votes = session.votes
    queues: Heap[Queue] = Heap(votes.queue_less)
    jobs: dict[str, Heap[Job]] = {}
    tasks: dict[str, Heap[Task]] = {}
    for job in session.jobs.values():
        if job.is_pending():
            if "enqueue" in session.conf.actions:
                continue
            job.phase = "Inqueue"
        if not votes.job_valid(job):
            continue
        waiting = [t for t in job.with_status("Pending") if not t.gated_by_others and not t.resreq.is_empty()]
        if not waiting:
            continue
        tasks[job.uid] = Heap(votes.task_less, waiting)
        if job.queue not in jobs:
            jobs[job.queue] = Heap(votes.job_less)
            queues.push(session.queues[job.queue])
        jobs[job.queue].push(job)

    while queues:
        queue = queues.pop()
        if votes.overused(queue):
            continue
        if not jobs[queue.name]:
            continue
        job = jobs[queue.name].pop()
        statement = allocate_tasks(session, queue, job, tasks[job.uid])
        if statement is not None and votes.job_ready(job):
            statement.commit()
            if tasks[job.uid]:
                jobs[queue.name].push(job)
        # A statement that only makes the job pipelined is neither committed nor discarded.
        queues.push(queue)


def allocate_tasks(session: Session, queue: Queue, job: Job, tasks: Heap[Task]) -> Statement | None:
    nodes = list(session.nodes.values())
    if not nodes:
        return None
    votes = session.votes
    statement = Statement(session)
    cache = get_bool(session.conf.action_arguments("allocate"), "predicateErrorCacheEnable", True)
    helper = PredicateHelper(session, cache)

    def check(task: Task, node: Node) -> None:
        if not task.resreq.less_equal(node.future_idle()):
            if task.resreq.less_equal(node.idle):
                session.rarities.add("future-idle")
            raise PredicateError("node(s) resource fit failed")
        votes.predicate(task, node)

    while tasks:
        task = tasks.pop()
        if not votes.allocatable(queue, task):
            continue
        if task.gated:
            continue
        if job.task_has_fit_errors(task):
            job.fit_errors[task.uid] = set()
            continue
        try:
            votes.pre_predicate(task)
        except PredicateError:
            job.fit_errors[task.uid] = set()
            if job.need_continue_allocating():
                continue
            break
        fit: list[Node] = []
        nominated = session.nodes.get(task.nominated)
        if nominated is not None and task.resreq.less_equal(nominated.future_idle()):
            fit = helper.predicate_nodes(task, [nominated], check)
        if not fit:
            fit = helper.predicate_nodes(task, nodes, check)
        if not fit:
            job.fit_errors[task.uid] = helper.hopeless
            if job.need_continue_allocating():
                continue
            break
        node = pick_node(session, task, fit)
        if node is None:
            continue
        if task.resreq.less_equal(node.idle):
            statement.allocate(task, node)
        elif task.resreq.less_equal(node.future_idle()):
            statement.pipeline(task, node)
        if votes.job_ready(job):
            break
    if votes.job_ready(job) or votes.job_pipelined(job):
        return statement
    statement.discard()
    return None


def pick_node(session: Session, task: Task, fit: list[Node]) -> Node | None:
    """Of the nodes with room now; else of those that will have room."""
    now = [n for n in fit if task.resreq.less_equal(n.idle)]
    later = [n for n in fit if n not in now and task.resreq.less_equal(n.future_idle())]
    for nodes in (now, later):
        if nodes:
            return best_node(session, task, nodes)
    return None
