"""overcommit: admits jobs up to a multiple of the cluster's capacity."""

from __future__ import annotations

from typing import Any

from tests.reference.conf import get_float
from tests.reference.job import Job
from tests.reference.resource import Resource
from tests.reference.session import Session
from tests.reference.votes import PERMIT, REJECT

DEFAULT = 1.2


def overcommit(session: Session, arguments: dict[str, Any]) -> None:
    factor = get_float(arguments, "overcommit-factor", DEFAULT)
    if factor < 1:
        factor = DEFAULT
    used = Resource()
    for node in session.nodes.values():
        used.add(node.used)
    idle = session.total.clone().multi(factor).sub(used)
    inqueue = Resource()
    for job in session.jobs.values():
        if job.min_resources is None:
            continue
        if job.phase == "Inqueue":
            inqueue.add(job.deduct_gated(job.minimum()))
        elif job.phase == "Running" and job.allocated_task_num() >= job.min_available:
            inqueue.add(job.deduct_gated(job.unallocated_minimum()))

    def enqueueable(job: Job) -> int:
        if job.min_resources is None:
            return PERMIT
        needed = inqueue.clone().add(job.minimum())
        return PERMIT if needed.less_equal_requested(idle, job.minimum()) else REJECT

    def enqueued(job: Job) -> None:
        if job.min_resources is not None:
            inqueue.add(job.deduct_gated(job.minimum()))

    session.votes.register("JobEnqueueable", "overcommit", enqueueable)
    session.votes.register("JobEnqueued", "overcommit", enqueued)
