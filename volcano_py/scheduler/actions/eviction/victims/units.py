"""Units: what is evicted at once, so that no gang is destroyed. Not in Volcano.

A unit is a whole job, or one pod above the minimum of its job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from volcano_py.scheduler.actions.eviction.victims.bundles import Surplus, requests
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import Resource


class Unit(NamedTuple):
    """Pods of one job that are evicted together. `whole`: all pods of the job."""

    job: SessionJob
    tasks: tuple[Task, ...]
    whole: bool

    @property
    def request(self) -> Resource:
        return requests(self.tasks)


def above_minimum(session: Session, job: SessionJob, task: Task) -> bool:
    """Whether one pod can be evicted alone: the job keeps its minimums, or it is the only pod that holds capacity."""
    if job.allocated_num == 1:
        return True
    if not job.task_min_available and not job.min_sub_jobs and not job.model.evicted_whole:
        return job.ready_num > job.min_available
    surplus = Surplus(job, session.statuses, exact=True)
    return not surplus.broken and surplus.take(task)


def units_of(session: Session, job: SessionJob, includes: Callable[[Task], bool]) -> list[Unit]:
    """The units of a job at the moment: single pods first. `includes`: which pods may be evicted."""
    placed = [t for t in job.tasks.values() if st.IS_ALLOCATED[session.status(t)]]
    if not placed:
        return []
    found = []
    if len(placed) > 1 and not job.model.evicted_whole:
        found = [Unit(job, (t,), False) for t in placed if includes(t) and above_minimum(session, job, t)]
    if all(includes(t) for t in placed):
        found.append(Unit(job, tuple(sorted(placed, key=lambda t: (t.priority, t.uid))), True))
    return found


def on_nodes(session: Session, unit: Unit) -> set[int]:
    """The nodes on which a unit frees capacity."""
    return {node for task in unit.tasks if (node := session.node_of(task)) is not None}
