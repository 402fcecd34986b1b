"""The permitted victims on one node. Volcano: ValidateVictims, and what precedes it in preempt and reclaim."""

from __future__ import annotations

from collections.abc import Callable

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

Select = Callable[[Task, list[Task]], list[Task]]
"""(evictor, candidates): the candidates that the plugins permit."""


def sufficient_victims(
    session: Session, task: Task, node: int, candidates: list[Task], select: Select
) -> list[Task] | None:
    """The candidates that the plugins permit, if the task fits without them; else None.

    A plugin can permit a limited number of victims, the first of the candidates (gang: those above the minimum). If
    these do not suffice, the plugins are called again with only the candidates that request what the task lacks on the
    node (deviation useful-victims).
    """
    found = select(task, candidates) if candidates else []
    if session.fits_without(task, node, found):
        return found
    if not session.deviations.useful_victims:
        return None
    useful = _useful(session, task, node, candidates)
    if not 0 < len(useful) < len(candidates):
        return None
    found = select(task, useful)
    return found if session.fits_without(task, node, found) else None


def _useful(session: Session, task: Task, node: int, candidates: list[Task]) -> list[Task]:
    """The candidates that request a resource of which the node has too little for the task, now and later."""
    n, table = session.numbers, session.table
    lacking = task.spec_class.vector(table) - n.idle[:, node] - n.releasing[:, node] + n.pipelined[:, node]
    rows = [row for row in task.spec_class.checked_rows(table) if lacking.item(row) > EPS]
    return [v for v in candidates if any(v.spec_class.vector(table).item(row) > 0 for row in rows)]
