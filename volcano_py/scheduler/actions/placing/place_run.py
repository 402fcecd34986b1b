"""Placing a run: equal tasks at the head of a gang's queue are placed in one operation, from the choice of their nodes
to the plan. The decisions equal those of placing one task after the other, as Volcano's allocateResourcesForTasks does.
"""

from __future__ import annotations

from itertools import takewhile

from volcano_py.scheduler.actions.placing.task_queue import TaskQueue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue

SHORTEST = 4
"""The shortest run; fewer tasks are placed one by one."""


class Runs:
    """The runs of one statement for a job without sub-jobs.

    Other tasks are placed one by one: tasks with claims, gates or a nominated node, classes with filters that cannot
    evaluate several tasks at once, and tasks that wait for capacity.
    """

    def __init__(self, session: Session, queue: Queue, job: SessionJob, statement: Statement) -> None:
        self._session = session
        self._queue = queue
        self._job = job
        self._statement = statement
        self._one_by_one: set[tuple[int, str]] = set()
        """Kinds of tasks for which no run can be placed, so that this is not tried again for each task of the gang."""

    def place(self, todo: TaskQueue) -> bool:
        """Place as many of the equal tasks at the end of `todo` as fit now, at most until the job may be ready, and
        remove them from `todo`; returns whether any was placed."""
        if len(todo) < SHORTEST or _special(self._session, todo[-1]) or _kind(todo[-1]) in self._one_by_one:
            return False
        kind = _kind(todo[-1])
        if self._placed(todo):
            return True
        self._one_by_one.add(kind)
        return False

    def _placed(self, todo: TaskQueue) -> bool:
        session, job, first = self._session, self._job, todo[-1]
        limit = min(len(todo), session.states.missing(job, first.role))
        if limit < SHORTEST or job.task_has_fit_errors(first) or not first.request.exact:
            return False
        handlers = session.events.run_handlers(first)
        limit = session.limits.how_many_allocatable(self._queue, first, limit)
        if handlers is None or limit < SHORTEST:
            return False
        kind = _kind(first)
        equal = list(takewhile(lambda t: _kind(t) == kind, reversed(todo[-limit:])))
        nodes = session.placement.best_for_run(first, len(equal)) if len(equal) >= SHORTEST else []
        run = list(takewhile(self._is_ordinary, equal[: len(nodes)]))
        if not run or not self._statement.allocate_run(job, run, nodes[: len(run)], handlers):
            return False
        session.work.tasks_tried += len(run)
        del todo[-len(run) :]
        return True

    def _is_ordinary(self, task: Task) -> bool:
        return not _special(self._session, task) and self._session.rules.pre_predicate(task) is None


def _kind(task: Task) -> tuple[int, str]:
    """The kind of a task. Tasks of one kind are equal for all filters and scores, and count for the same minimum."""
    return task.spec_class.id, task.role


def _special(session: Session, task: Task) -> bool:
    """Whether more than the kind of a task decides about its node."""
    return not task.plain or session.nominated_node(task) is not None
