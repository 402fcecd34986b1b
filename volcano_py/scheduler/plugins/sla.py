"""sla: a job that has waited too long is admitted and served first. Volcano: plugin sla.

The annotation `sla-waiting-time` of the PodGroup sets the waiting time of a job, else the plugin's argument does. A
PERMIT ends the vote only at the end of its tier: to overrule gang and overcommit, put sla in an earlier tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from msgspec import field

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session


class Sla(Plugin):
    """See `Arguments`."""

    name = "sla"

    class Arguments(PluginArguments):
        waiting_time: str = field(default="", name="sla-waiting-time")
        """The waiting time of jobs without the annotation: a duration such as 1h30m; an empty, invalid, zero or
        negative value means none."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.waiting_time: float | None = None
        if read.waiting_time:
            try:
                seconds = parse_duration(read.waiting_time)
            except ValueError as e:
                self.warn(f"argument sla-waiting-time: {e}; it is not in force")
            else:
                self.waiting_time = seconds if seconds > 0 else None

    def on_session_open(self, session: Session) -> None:
        def due(job: SessionJob) -> float:
            """When its waiting time ends, in seconds since the epoch."""
            waiting = self.waiting_time if job.model.waiting_time is None else job.model.waiting_time
            return inf if waiting is None else job.created + waiting

        def overdue(job: SessionJob) -> Vote:
            session.wake_at(due(job))
            return Vote.PERMIT if due(job) <= session.now else Vote.ABSTAIN

        session.add_job_order(due, own=True)
        session.add_job_enqueueable(overdue)
        session.add_job_pipelined(overdue)
