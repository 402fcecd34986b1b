"""The sets of nodes within one of which a job must run, for plans that are made apart from placing. Not in Volcano."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session

Bools = NDArray[np.bool_]


def domains_of_job(session: Session, job: SessionJob) -> list[Bools] | None:
    """The nodes of each HyperNode, or of each value of a label, within which a job must be; those of the highest tier
    first. None: it has no hard topology. Only domains that contain the pods that run already; empty: there is none."""
    constraint, topology = job.constraint, session.topology
    if constraint is None or not constraint.hard:
        return None
    if constraint.label:
        names, column = topology.by_label(constraint.label)
        found = [column == i for i in range(len(names))]
    else:
        assert constraint.tier is not None
        if constraint.tier >= topology.root_tier:
            return None
        tiers = range(constraint.tier, 0, -1)
        found = [topology.mask(name) for tier in tiers for name in topology.of_tier(tier)]
    index = session.table.index
    held = [index[task.node] for task in job.tasks.values() if task.takes_capacity and task.node in index]
    return [domain for domain in found if domain[held].all()]


def has_topology_below(job: SessionJob) -> bool:
    """Whether sub-groups of a job have domains of their own."""
    return any(sub.constraint for sub in job.sub_jobs.values() if sub.uid != job.uid)
