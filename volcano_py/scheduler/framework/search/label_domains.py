"""Domains of nodes by a label: where a native gang with a topology constraint may be placed. Kubernetes:
TopologyAwareWorkloadScheduling.

A domain has the name `key=value`, and is used in place of a HyperNode of a hard constraint; no objects and no plugin
are necessary. The placed members of a gang determine the domain of the other members.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.extension_points.open_session import OpenSession
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import Level, SubJob
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import PODS


def domains_of(session: OpenSession, job: SessionJob) -> list[str]:
    """The domains in which a job with a topology key may be: that of its placed members, else all; none if placed
    members are in several domains."""
    names, of_node = session.topology.by_label(job.model.topology_key)
    nodes = {session.node_of(t) for t in job.tasks.values() if st.IS_ALLOCATED[session.status(t)]}
    here = {-1 if node is None else int(of_node[node]) for node in nodes}
    if not here:
        return names
    return [names[here.pop()]] if len(here) == 1 and -1 not in here else []


def domains_of_group(session: OpenSession, job: SessionJob, path: Sequence[Level], outer: str) -> list[str]:
    """The domains inside a HyperNode or a domain in which a group of a tree may be. `path`: the groups above it,
    without the root, and itself. The placed members of each of these groups determine its domain."""
    found = [outer]
    for level in path:
        if level.topology_key:
            found = [name for around in found for name in session.topology.within(around, level.topology_key)]
            nodes = _nodes_of(session, (t for uid in level.subs for t in job.sub_jobs[uid].tasks.values()))
            if nodes:
                found = [name for name in found if session.topology.mask(name)[nodes].all()]
    return found


def _nodes_of(session: OpenSession, tasks: Iterable[Task]) -> list[int]:
    """The nodes of the placed tasks."""
    placed = (session.node_of(t) for t in tasks if st.IS_ALLOCATED[session.status(t)])
    return [node for node in placed if node is not None]


def domains_for(session: OpenSession, job: SessionJob, *, evicts: bool) -> list[str]:
    """Of the domains in which a job may be, those with enough capacity for the tasks that it lacks of its minimum.
    `evicts`: counting everything that could be evicted."""
    names, of_node = session.topology.by_label(job.model.topology_key)
    need = _least(session, job)
    if need is None:
        return domains_of(session, job)
    n = session.numbers
    free = n.allocatable if evicts else n.idle + n.releasing - n.pipelined
    have = _sums(free[: len(need)], of_node, len(names))
    fits: NDArray[np.bool_] = np.all((have >= need[:, None] - EPS) | (need <= 0)[:, None], axis=0)
    large_enough = {names[i] for i in np.flatnonzero(fits).tolist()}
    return [name for name in domains_of(session, job) if name in large_enough]


def scores_of(session: OpenSession, sub: SubJob, domains: list[str]) -> dict[str, float]:
    """How full each domain would be with the sub-job, from 0 to 100: the mean of the resources that it requests."""
    return fullness(session, sub.tasks.values(), domains)


def fullness(session: OpenSession, tasks: Iterable[Task], domains: Iterable[str]) -> dict[str, float]:
    """The same for any tasks."""
    table, n = session.table, session.numbers
    requested = sum((t.spec_class.vector(table) for t in tasks), start=np.zeros(len(table.rows)))
    rows = [row for name, row in table.rows.items() if requested[row] > 0 and name != PODS]
    scores = {}
    for name in domains:
        columns = session.topology.columns(name)
        have = n.allocatable[rows][:, columns].sum(axis=1)
        full = n.used[rows][:, columns].sum(axis=1) + requested[rows]
        parts = np.divide(full, have, out=np.zeros_like(full), where=have > 0)
        scores[name] = 100.0 * float(np.minimum(parts, 1.0).mean()) if rows else 0.0
    return scores


def _least(session: OpenSession, job: SessionJob) -> NDArray[np.float64] | None:
    """The smallest request of the pending members, times the number that the job lacks of its minimum; None if it
    lacks none."""
    lacking = job.min_available - job.ready_num
    waiting = {t.spec_class for t in session.pending(job)}
    if lacking < 1 or not waiting:
        return None
    smallest: NDArray[np.float64] = np.min([c.vector(session.table) for c in waiting], axis=0)
    return smallest * lacking


def _sums(columns: NDArray[np.float64], of_node: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Columns over nodes, summed by domain."""
    inside = of_node >= 0
    return np.array([np.bincount(of_node[inside], weights=row[inside], minlength=count) for row in columns])


def nodes_outside(session: OpenSession, job: SessionJob, task: Task) -> NDArray[np.bool_] | None:
    """The nodes on which a task of a job may not be placed now because of topology keys; None: there are none."""
    sub = job.sub_job_of(task)
    path = sub.path if sub is not None else ()
    if not job.model.topology_key and not any(level.topology_key for level in path):
        return None
    left_out = np.ones(len(session.table), dtype=bool)
    for outer in domains_of(session, job) if job.model.topology_key else [ROOT]:
        for name in domains_of_group(session, job, path, outer):
            left_out[session.topology.columns(name)] = False
    return left_out
