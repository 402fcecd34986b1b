"""Placing the tasks of one gang, one after the other. Volcano: allocateResourcesForTasks, allocateFromNomination."""

from __future__ import annotations

from volcano_py.scheduler.actions.placing.arrangement import arranged, lacking
from volcano_py.scheduler.actions.placing.gang_tasks import GangTasks, extend_domain
from volcano_py.scheduler.actions.placing.place_run import SHORTEST, Runs
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, refill, task_queue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.search.fit_errors import FitErrors
from volcano_py.scheduler.framework.search.label_domains import nodes_outside
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue


def place_tasks(
    session: Session,
    queue: Queue,
    job: SessionJob,
    todo: TaskQueue,
    sub: SubJob | None = None,
    hyper_node: str = ROOT,
) -> tuple[Statement, bool]:
    """Place tasks until the job (or its sub-job) is ready; returns the statement, and whether it is ready.

    If the job becomes neither ready nor pipelined, the statement is discarded and empty. `hyper_node`: the domain of
    the nodes.
    """
    if sub is not None:
        sub.current_hyper_node = sub.allocated_hyper_node
    before = todo.copy() if session.deviations.what_fits_starts and len(todo) > 1 else None
    statement, ready = _place_all(session, queue, job, todo, sub, hyper_node)
    if before is not None and not ready and not statement.steps and not (sub or job).is_ready():
        ready = _place_arranged(session, queue, job, statement, before, todo, sub, hyper_node)
    if sub is not None:
        sub.current_hyper_node = ""
    return statement, ready


def _place_arranged(
    session: Session,
    queue: Queue,
    job: SessionJob,
    statement: Statement,
    tasks: TaskQueue,
    todo: TaskQueue,
    sub: SubJob | None,
    hyper_node: str,
) -> bool:
    """Place the missing members of a gang in another arrangement; returns whether the gang is ready. The tasks that
    are not needed stay in `todo`."""
    outside = None if hyper_node == ROOT else ~session.topology.mask(hyper_node)
    candidates = [t for t in tasks if not t.sched_gated]
    placed = arranged(session, queue, candidates, lacking(session, job, sub), outside)
    if placed is None:
        return False
    for task, node in placed:
        if not session.limits.allocatable(queue, task) or place(session, statement, task, node) is not None:
            statement.discard()
            return False
        extend_domain(session, sub, node)
    job.forget_fit_errors(sub)
    chosen = {task.slot for task, _ in placed}
    refill(todo, [t for t in tasks if t.slot not in chosen])
    if _ready(session, job, sub):
        return place_needed_best_effort(session, statement, job, sub)
    if not (session.states.job_pipelined(job) if sub is None else session.states.sub_job_pipelined(job, sub)):
        statement.discard()
    return False


def _place_all(
    session: Session, queue: Queue, job: SessionJob, todo: TaskQueue, sub: SubJob | None, hyper_node: str
) -> tuple[Statement, bool]:
    statement = Statement(session)
    outside = None if hyper_node == ROOT else ~session.topology.mask(hyper_node)
    if outside is not None:
        nowhere = bool(outside.all())
    else:
        nowhere = not session.table.names and not session.deviations.explain_topology
    if nowhere:
        return statement, False
    _nominated_first(session, todo)
    gang = GangTasks(session, queue, job, sub, hyper_node, outside)
    in_runs = len(todo) >= SHORTEST and gang.in_runs
    runs = Runs(session, queue, job, statement) if in_runs and not session.orders.task_order_moves else None
    while todo:
        if runs is not None and runs.place(todo) and session.states.job_ready(job):
            return statement, place_needed_best_effort(session, statement, job, None)
        if not todo:
            break
        task = todo.pop()
        session.work.tasks_tried += 1
        if gang.leaves_out(task):
            continue
        node = gang.node_for(task)
        if node is None:
            if job.need_continue_allocating(session.statuses, sub):
                continue
            break
        if place(session, statement, task, node) is not None:
            continue
        if sub is not None:
            extend_domain(session, sub, node)
        if _ready(session, job, sub):
            return statement, place_needed_best_effort(session, statement, job, sub)
    if _ready(session, job, sub):
        return statement, place_needed_best_effort(session, statement, job, sub)
    if not (session.states.job_pipelined(job) if sub is None else session.states.sub_job_pipelined(job, sub)):
        statement.discard()
    return statement, False


def _nominated_first(session: Session, todo: TaskQueue) -> None:
    """Move tasks to the front for which capacity was freed. Otherwise another task of the gang, which also fits
    elsewhere, could use this capacity, and the gang would not fit as planned."""
    nominations = session.cluster.nominations.node_of
    if nominations and session.deviations.kept_nominations:
        todo.sort(key=lambda t: t.key in nominations)


def place_needed_best_effort(session: Session, statement: Statement, job: SessionJob, sub: SubJob | None) -> bool:
    """Where a gang reaches its minimum only with members that request nothing, place these as well. If one of them does
    not fit, the gang is not ready, and its statement is discarded."""
    gang = sub or job
    if gang.ready_num >= gang.min_available or not session.deviations.whole_best_effort:
        return True
    waiting = [t for t in gang.tasks.values() if t.best_effort and session.status(t) == st.PENDING]
    if not waiting:
        return True  # no plugin requires the minimum (gang with enableJobReady: false)
    todo = task_queue(session.orders, (t for t in waiting if not t.sched_gated))
    while todo and gang.ready_num < gang.min_available:
        task = todo.pop()
        node = place_best_effort(session, job, task)
        if node is not None:
            statement.allocate(task, node)
    if gang.ready_num >= gang.min_available:
        return True
    statement.discard()
    return False


def place_best_effort(session: Session, job: SessionJob, task: Task) -> int | None:
    """The node for a task that requests nothing; None if no node accepts it, with the reasons recorded."""
    error = session.rules.pre_predicate(task)
    if error is not None:
        count = len(session.table)
        job.record_fit_errors(task, FitErrors({error: count}, count))
        return None
    placement = session.placement
    # A node whose pods exceed its allocatable amounts also rejects best-effort pods when they are bound.
    left_out = ~placement.has_idle(task) if session.deviations.whole_best_effort else None
    if (elsewhere := nodes_outside(session, job, task)) is not None:
        left_out = elsewhere if left_out is None else left_out | elsewhere
    node = placement.best(task, check_capacity=False, without=left_out)
    if node is None:
        only_overfull = bool(placement.accepted(task, check_capacity=False).any())
        job.record_fit_errors(task, placement.fit_errors(task, check_capacity=only_overfull))
    return node


def place(session: Session, statement: Statement, task: Task, node: int) -> str | None:
    """Allocate a task to a node where it fits now, or pipeline it where releasing capacity suffices; else change
    nothing and return why."""
    if session.placement.fits_now(task, node):
        return statement.allocate(task, node, fits=True)
    if session.placement.fits_soon(task, node):
        return statement.pipeline(task, node, evicted=False)
    return None


def place_as_nominated(
    session: Session, queue: Queue, job: SessionJob, sub: SubJob, todo: TaskQueue
) -> Statement | None:
    """Place a sub-job where pods were evicted for it: all of its pending tasks; None if one of them does not fit."""
    topology, placement = session.topology, session.placement
    hyper_node, sub.nominated_hyper_node = sub.nominated_hyper_node, ""
    if not topology.has(hyper_node) or not len(topology.columns(hyper_node)):
        return None
    inside = topology.mask(hyper_node)
    statement = Statement(session)
    places = []
    waiting = todo.copy()
    while waiting:
        task = waiting.pop()
        node = session.nominated_node(task)
        if (
            node is None
            or not inside[node]
            or not session.limits.allocatable(queue, task)
            or session.rules.pre_predicate(task) is not None
            or not placement.accepted(task)[node]
        ):
            break
        places.append((task, node))
    if len(places) == len(todo) and all(place(session, statement, t, n) is None for t, n in places):
        todo.clear()
        sub.allocated_hyper_node = topology.lowest_common(hyper_node, sub.allocated_hyper_node)
        return statement
    statement.discard()
    session.forgotten_nominations.update(t.key for t in todo)
    return None


def _ready(session: Session, job: SessionJob, sub: SubJob | None) -> bool:
    return session.states.job_ready(job) if sub is None else session.states.sub_job_ready(job, sub)
