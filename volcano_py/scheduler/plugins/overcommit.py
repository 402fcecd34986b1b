"""overcommit: admit slightly more than the cluster can hold. Volcano: plugin overcommit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from volcano_py.scheduler.explain.table import ENQUEUE_CLUSTER
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU
from volcano_py.scheduler.plugins.queue_shares.inqueue import format_names, gated_deducted, inqueue_resource
from volcano_py.scheduler.plugins.queue_shares.within import exceeded

DEFAULT_FACTOR = 1.2


class Overcommit(Plugin):
    """See `Arguments`."""

    name = "overcommit"

    class Arguments(PluginArguments):
        factor: float = field(default=DEFAULT_FACTOR, name="overcommit-factor")
        """The limit of admitted requests, as a multiple of the cluster; a value below 1 means the default."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.factor = read.factor if read.factor >= 1 else DEFAULT_FACTOR

    def on_session_open(self, session: Session) -> None:
        idle = session.admissible.clone().multi(self.factor).sub_unchecked(_used(session))
        inqueue = Resource()
        for job in session.jobs.active():
            if job.min_resources is None:
                continue
            if job.claims_minimum:
                inqueue.add(gated_deducted(job, job.min_resources))
            elif job.phase == "Running" and job.allocated_num >= job.min_available:
                inqueue.add(gated_deducted(job, inqueue_resource(job)))

        # A job that is not admitted has no pods for which capacity could be reclaimed.
        claims = session.deviations.reclaim_admits and not {"reclaim", "gangreclaim"}.isdisjoint(
            session.configuration.actions
        )

        def enqueueable(job: SessionJob) -> Vote:
            if job.min_resources is None:
                return Vote.PERMIT
            lacking = exceeded(job.min_resources, idle, (inqueue,))
            if not lacking:
                return Vote.PERMIT
            if claims and session.limits.entitled(job.queue, job.min_resources):
                return Vote.PERMIT
            text = format_names("resource in cluster is overused", "overused", lacking)
            session.note(job, "Normal", "Unschedulable", text)
            d = next(iter(lacking), CPU)
            limit = session.admissible[d] * self.factor
            job.block(
                ENQUEUE_CLUSTER.because(
                    resource=d,
                    requested=job.min_resources[d],
                    held=limit - idle[d] + inqueue[d],
                    limit=limit,
                    missing=job.min_resources[d] + inqueue[d] - idle[d],
                    factor=f"{self.factor:g}",
                    total=session.admissible[d],
                    claimants="",
                )
            )
            return Vote.REJECT

        def enqueued(job: SessionJob) -> None:
            if job.min_resources is not None:
                inqueue.add(gated_deducted(job, job.min_resources))

        session.add_job_enqueueable(enqueueable)
        session.add_job_enqueued(enqueued)


def _used(session: Session) -> Resource:
    used = Resource(scalars={})
    n = session.numbers
    # What other schedulers' pods hold is not part of the usable capacity.
    sums = (n.used - n.foreign if session.deviations.usable_capacity else n.used).sum(axis=1)
    for name, row in session.table.rows.items():
        if sums[row]:
            used[name] = float(sums[row])
    return used
