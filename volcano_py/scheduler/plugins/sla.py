"""sla: who has waited for too long is let in and served first. Volcano: plugin sla.

The waiting time of a job is its PodGroup's annotation `sla-waiting-time`, else the plugin's argument. A
Permit only ends the vote at the end of its tier: put sla in an earlier tier than gang and overcommit for it
to overrule them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec
from msgspec import field

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.arguments import decode
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.votes import ABSTAIN, PERMIT


class Arguments(msgspec.Struct):
    waiting_time: str = field(default="", name="sla-waiting-time")
    """For jobs that say nothing themselves: a duration such as 1h30m; empty, unreadable or not positive:
    none."""


class Sla:
    """See `Arguments`."""

    name = "sla"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        read, self.warnings = decode(Arguments, f"plugin {self.name}", arguments)
        self.waiting_time: float | None = None
        if read.waiting_time:
            try:
                seconds = parse_duration(read.waiting_time)
            except ValueError as e:
                self.warnings.append(f"plugin {self.name}: argument sla-waiting-time: {e}; it is not in force")
            else:
                self.waiting_time = seconds if seconds > 0 else None

    def on_session_open(self, session: Session) -> None:
        def due(job: SessionJob) -> float:
            """When its patience ends, in seconds since the epoch."""
            waiting = self.waiting_time if job.model.waiting_time is None else job.model.waiting_time
            return inf if waiting is None else job.created + waiting

        def overdue(job: SessionJob) -> int:
            return PERMIT if due(job) <= session.now else ABSTAIN

        session.votes.add("job_order", self.name, due)
        session.votes.add("job_enqueueable", self.name, overdue)
        session.votes.add("job_pipelined", self.name, overdue)
