"""Plans of whole units: the members of a gang are placed again as a whole, once it is known what is evicted. Not in
Volcano."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.actions.eviction.victims.units import Unit
from volcano_py.scheduler.actions.eviction.will_start import will_start
from volcano_py.scheduler.actions.placing.arrangement import Lacking, arranged
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

MOST_TRIED = 2_000
"""The limit of units times members up to which units are left out one by one."""


class Members(NamedTuple):
    """The pending tasks of a job that have to be placed together. `outside`: nodes that are left out. `reason`: of the
    evictions."""

    job: SessionJob
    tasks: Sequence[Task]
    outside: NDArray[np.bool_] | None
    reason: str


def placement(session: Session, members: Members) -> Statement | None:
    """All members on nodes with capacity now or later, applied to the session; None, without changes, if they do not
    fit."""
    statement = Statement(session, members.job.uid)
    if _place_in_order(session, statement, members):
        return statement
    statement.discard()
    queue = session.queues[members.job.queue]
    pending = [t for t in members.tasks if session.status(t) == st.PENDING]
    found = arranged(session, queue, pending, Lacking(len(pending), {}), members.outside)
    for task, node in found or ():
        if not session.limits.allocatable(queue, task) or statement.pipeline(task, node, evicted=True) is not None:
            statement.discard()
            return None
    return None if found is None else statement


def _place_in_order(session: Session, statement: Statement, members: Members) -> bool:
    queue = session.queues[members.job.queue]
    for task in members.tasks:
        if not session.limits.allocatable(queue, task) or session.rules.pre_predicate(task) is not None:
            return False
        node = session.placement.best(task, without=members.outside)
        if node is None or statement.pipeline(task, node, evicted=True) is not None:
            return False
    return True


def applied(session: Session, units: Sequence[Unit], members: Members) -> Statement | None:
    """The evictions of units and the placement of the members, applied to the session; None, without changes, if the
    job cannot start."""
    statement = Statement(session, members.job.uid)
    for unit in units:
        for task in unit.tasks:
            statement.evict(task, members.reason)
    found = placement(session, members)
    if found is not None:
        statement.merge(found)
    if found is None or not will_start(session, members.job):
        statement.discard()
        return None
    return statement


def without_needless(session: Session, statement: Statement, members: Members) -> Statement | None:
    """A statement that evicts only the units of another one without which the members do not fit, the largest one left
    out first; None, without changes, if the job cannot start, or if it starts without evictions."""
    evicted = [step.task for step in statement.steps if step.kind == "evict"]
    if not evicted or not will_start(session, members.job):
        statement.discard()
        return None
    units = _units(session, evicted)
    if len(units) == 1 or len(units) * len(members.tasks) > MOST_TRIED:
        return statement
    steps = list(statement.steps)
    statement.discard()
    kept = units
    for unit in sorted(units, key=lambda u: -len(u.tasks)):
        fewer = [u for u in kept if u is not unit]
        trial = applied(session, fewer, members)
        if trial is not None:
            trial.discard()
            kept = fewer
    if not kept:
        return None
    found = applied(session, kept, members)
    if found is None:  # the members fit only on the nodes of the statement, such as those of an own shard
        found = Statement(session, members.job.uid)
        if found.replay(steps) is not None:
            found.discard()
            return None
    return found


def _units(session: Session, evicted: Sequence[Task]) -> list[Unit]:
    """Evicted tasks as units: all of a job that keeps no pod, and single pods of the others."""
    lost: dict[str, list[Task]] = {}
    for task in evicted:
        lost.setdefault(task.job, []).append(task)
    found = []
    for uid, tasks in lost.items():
        job = session.jobs[uid]
        if any(st.IS_ALLOCATED[session.status(t)] for t in job.tasks.values()):
            found += [Unit(job, (t,), False) for t in tasks]
        else:
            found.append(Unit(job, tuple(tasks), True))
    return found
