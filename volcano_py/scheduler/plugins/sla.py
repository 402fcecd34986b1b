"""sla: a job that has waited too long is admitted and served first. Volcano: plugin sla.

The waiting time of a job is its PodGroup's annotation `sla-waiting-time`, else the plugin's argument. A
Permit only ends the vote at the end of its tier: put sla in an earlier tier than gang and overcommit for it
to overrule them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from msgspec import field

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob


class Sla(Plugin):
    """See `Arguments`."""

    name = "sla"

    class Arguments(PluginArguments):
        waiting_time: str = field(default="", name="sla-waiting-time")
        """For jobs without the annotation: a duration such as 1h30m; empty, unreadable or not positive:
        none."""

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
            return Vote.PERMIT if due(job) <= session.now else Vote.ABSTAIN

        session.add_job_order(due)
        session.add_job_enqueueable(overdue)
        session.add_job_pipelined(overdue)
