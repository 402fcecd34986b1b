"""shortest-remaining: jobs that are expected to end soonest come first. Not in Volcano.

What remains of a job is its limit, as for reservations, without the time since the start of its first pod that runs. A
job without a limit comes after those with one. A job that has waited for `longest-wait` comes before all others, in the
order of age, so that long jobs start, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from msgspec import field

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, limit_in
from volcano_py.scheduler.framework.reservations.learned_run_times import LearnedRunTimes
from volcano_py.scheduler.framework.reservations.running_pods import start_of
from volcano_py.scheduler.framework.session import Session


class ShortestRemaining(Plugin):
    """See `Arguments`."""

    name = "shortest-remaining"

    class Arguments(PluginArguments):
        longest_wait: str = field(default="24h", name="longest-wait")
        """After this time a job comes before all others; 0s: never."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.longest_wait = self.duration("longest_wait")

    def on_session_open(self, session: Session) -> None:
        estimates = Estimates(learned=session.cluster.keep(LearnedRunTimes))

        def key(job: SessionJob) -> tuple[int, float]:
            due = job.created + self.longest_wait
            if self.longest_wait and session.now >= due:
                return 0, job.created
            if self.longest_wait:
                session.wake_at(due)
            return 1, remaining(session, job, estimates)

        session.add_job_order(key)


def remaining(session: Session, job: SessionJob, estimates: Estimates) -> float:
    """For how long a job is expected to run from now on; infinite if nothing is known."""
    limit = limit_in(session, job.uid, estimates)
    if limit is None:
        return inf
    starts = [start for t in job.tasks.values() if t.takes_capacity and -inf < (start := start_of(t)) < inf]
    return max(0.0, limit - max(0.0, session.now - min(starts))) if starts else limit
