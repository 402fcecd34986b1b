"""Placing a run: equal tasks at the head of a gang's queue are one operation, from the choice of their nodes to the
plan. The decisions are those of placing one task after the other. Volcano: allocateResourcesForTasks, which does that.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.demand import NONE
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.task import Task

_SHORTEST = 4
"""Fewer tasks are placed one by one."""


def place_run(session: Session, queue: Queue, job: SessionJob, todo: list[Task], statement: Statement) -> bool:
    """Place as many of the equal tasks that come next as fit now, at most until the job may be ready; whether there are
    any.

    They are taken from the end of `todo`. What it leaves, possibly everything, is placed one by one: tasks with claims,
    gates or a nominated node, classes with rules that cannot look ahead, and tasks that have to wait for capacity.
    """
    if len(todo) < _SHORTEST or session.task_order_moves or job.sub_jobs or _special(session, todo[-1]):
        return False
    first = todo[-1]
    limit = min(len(todo), session.missing(job, first.role))
    if limit < _SHORTEST or job.task_has_fit_errors(first) or not first.request.exact:
        return False
    handlers = session.run_handlers(first)
    limit = session.how_many_allocatable(queue, first, limit)
    if handlers is None or limit < _SHORTEST:
        return False
    run = _equal(session, todo, limit)
    nodes = session.placement.best_for_run(first, len(run)) if len(run) >= _SHORTEST else []
    if not nodes:
        return False
    run = run[: len(nodes)]
    del todo[-len(run) :]
    session.work.tasks_tried += len(run)
    if statement.allocate_run(job, run, nodes, handlers):
        return True
    todo += reversed(run)
    return False


def _special(session: Session, task: Task) -> bool:
    """Whether a task has something beside its class that decides about its place."""
    return (
        task.claims is not NONE
        or task.sched_gated
        or task.wants_queue_admission
        or session.nominated_node(task) is not None
    )


def _equal(session: Session, todo: list[Task], limit: int) -> list[Task]:
    """The tasks at the end of `todo`, in their order, that are equal to the first of them."""
    first = todo[-1]
    run: list[Task] = []
    for task in reversed(todo[-limit:]):
        if task.spec_class is not first.spec_class or task.role != first.role or _special(session, task):
            break
        if session.pre_predicate(task) is not None:
            break
        run.append(task)
    return run
