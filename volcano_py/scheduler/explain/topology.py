"""The domain of the network that comes closest to holding a gang: a HyperNode, or a domain of a node label. Not in
Volcano."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import TierConstraint
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.search.label_domains import domains_of
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


def topology_cause(session: Session, job: SessionJob, task: Task) -> Cause | None:
    """The HyperNode of an allowed tier, or the domain, in which most of the gang fits; None if a whole gang fits."""
    subs = sorted(
        (s for s in job.sub_jobs.values() if s.constraint is not None and s.constraint.hard),
        key=lambda s: (s.ready_num >= s.min_available, s.uid),
    )
    constraint = subs[0].constraint if subs else job.constraint
    gang = subs[0] if subs else job
    if constraint is None or not constraint.hard:
        return None
    if constraint.unknown:
        known = ", ".join(sorted(session.topology.tier_of_name)) or "none"
        return table.UNKNOWN_TIER.because(tier=constraint.unknown, known=known)
    if constraint.label and not any(constraint.label in (n.metadata.labels or {}) for n in session.table.objects):
        return table.LABEL_MISSING.because(label=constraint.label)
    need = max(gang.min_available - gang.ready_num, 1)
    fits = copies(session, task)
    names = _allowed(session, job, constraint)
    domains = [(int(fits[session.topology.columns(name)].sum()), name) for name in names]
    most, best = min(domains, key=lambda d: (-d[0], d[1]), default=(0, "none"))
    if most >= need:
        return None
    if constraint.label:
        return table.LABEL_DOMAIN_SHORT.because(label=constraint.label, domain=best, placeable=most, need=need)
    return table.TOPOLOGY_SHORT.because(tier=str(constraint.tier), domain=best, placeable=most, need=need)


def _allowed(session: Session, job: SessionJob, constraint: TierConstraint) -> list[str]:
    """The HyperNodes or domains in which the gang may be placed."""
    if constraint.label:
        return domains_of(session, job)
    highest = constraint.tier or 0
    return [name for name, info in session.topology.infos.items() if info.tier <= highest and name != ROOT]


def copies(session: Session, task: Task) -> NDArray[np.int64]:
    """How many equal tasks each node that accepts the task can hold by its resources."""
    view = session.placement.view(task)
    n = session.numbers
    rows = [r for r in view.rows if view.vector[r] > 0]
    soon = n.idle[rows] + n.releasing[rows] - n.pipelined[rows]
    whole = np.floor((soon + 0.05) / view.vector[rows, None]).min(axis=0, initial=float(len(session.table) * 1000))
    return np.where(session.placement.accepted(task), np.maximum(whole, 0), 0).astype(np.int64)
