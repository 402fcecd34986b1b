"""The pods that a gang needs to start, by class, and the nodes that they may use. Not in Volcano."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.network.job_domains import has_topology_below
from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers
from volcano_py.scheduler.framework.reservations.expected_ends import ExpectedEnds
from volcano_py.scheduler.framework.search.node_rules import limits_pods
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


def members_of(session: Session, job: SessionJob, ends: ExpectedEnds) -> list[GangMembers]:
    """Empty: the gang is not complete, has sub-groups with domains of their own, or a rule rejects a pod everywhere."""
    missing = job.min_available - job.ready_num
    pending = [task for task in session.pending(job) if not task.sched_gated][: max(0, missing)]
    if not pending or len(pending) < missing or has_topology_below(job):
        return []
    found: dict[int, list[Task]] = {}
    for task in pending:
        found.setdefault(task.spec_class.id, []).append(task)
    gang = []
    for tasks in found.values():
        task = tasks[0]
        if session.rules.pre_predicate(task) is not None:
            return []
        limited = any(limits_pods(f, task) for _, f in session.placement.filters)
        opens = _opens(session, task, ends if limited else None)
        rows = task.spec_class.checked_rows(session.table)
        gang.append(GangMembers(task.spec_class.vector(session.table), rows, opens, tasks, limited))
    return gang


def _opens(session: Session, task: Task, ends: ExpectedEnds | None) -> NDArray[np.float64]:
    """From when on each node accepts a task, whatever its free capacity is. `ends`: None, if pods are not in its way.

    A node whose pods are in the way, such as by their devices or ports, accepts it when all of them have ended: that a
    part of them suffices is found in a later session.
    """
    accepted = session.placement.accepted(task, check_capacity=False)
    opens = np.where(accepted, -inf, inf)
    if ends is not None and not accepted.all():
        later = session.placement.resolvable(task) & ~accepted
        last = ends.last(len(accepted))
        opens[later] = np.where(last > -inf, last, inf)[later]
    return opens
