"""How far a gang with a network topology is from fitting one HyperNode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.topology import ROOT
from volcano_py.scheduler.model.task import Task


def topology_cause(session: Session, job: SessionJob, task: Task) -> Cause | None:
    """The HyperNode of an allowed tier in which most of the gang fits; None if a whole gang fits in one."""
    subs = sorted(
        (s for s in job.sub_jobs.values() if s.constraint is not None and s.constraint.hard),
        key=lambda s: (s.ready_num >= s.min_available, s.uid),
    )
    constraint = subs[0].constraint if subs else job.constraint
    gang = subs[0] if subs else job
    if constraint is None or constraint.tier is None:
        return None
    need = max(gang.min_available - gang.ready_num, 1)
    fits = _copies(session, task)
    domains = [
        (int(fits[session.topology.columns(name)].sum()), name)
        for name, info in session.topology.infos.items()
        if info.tier <= constraint.tier and name != ROOT
    ]
    most, best = min(domains, key=lambda d: (-d[0], d[1]), default=(0, "no HyperNode"))
    if most >= need:
        return None
    return table.TOPOLOGY_SHORT.because(tier=str(constraint.tier), domain=best, placeable=most, need=need)


def _copies(session: Session, task: Task) -> NDArray[np.int64]:
    """How many equal tasks each node that accepts the task holds by its resources."""
    view = session.placement.view(task)
    n = session.numbers
    rows = [r for r in view.rows if view.vector[r] > 0]
    soon = n.idle[rows] + n.releasing[rows] - n.pipelined[rows]
    whole = np.floor((soon + 0.05) / view.vector[rows, None]).min(axis=0, initial=float(len(session.table) * 1000))
    return np.where(session.placement.accepted(task), np.maximum(whole, 0), 0).astype(np.int64)
