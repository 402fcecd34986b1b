"""earliest-deadline: jobs whose deadline comes first are served first; one that cannot be met is not admitted. Not in
Volcano.

The annotation `volcano.sh/deadline` of the PodGroup (the controllers copy it from a Job) is a time such as
2026-11-28T18:00:00Z, or a duration after the creation. A deadline cannot be met if the job's limit is longer than the
time until then: waiting makes it no better, and starting it would take capacity from those that can still be met.
"""

from __future__ import annotations

from math import inf

from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import format_time, parse_time
from volcano_py.scheduler.explain.table import REJECTED
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates
from volcano_py.scheduler.framework.reservations.learned_run_times import LearnedRunTimes
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.plugins.shortest_remaining import remaining

DEADLINE = "volcano.sh/deadline"


class EarliestDeadline(Plugin):
    """See `Arguments`."""

    name = "earliest-deadline"

    class Arguments(PluginArguments):
        reject: bool = True
        """Whether a job whose deadline cannot be met stays Pending; otherwise it is only served last."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        estimates = Estimates(learned=session.cluster.keep(LearnedRunTimes))

        def late(job: SessionJob) -> float:
            """By how many seconds the deadline of a job would be missed if it started now; negative: it would not."""
            needs = remaining(session, job, estimates)
            return session.now + (0.0 if needs == inf else needs) - deadline_of(job)

        def key(job: SessionJob) -> tuple[int, float]:
            deadline = deadline_of(job)
            if deadline == inf:
                return 1, 0.0
            return (2, deadline) if late(job) > 0 else (0, deadline)

        def enqueueable(job: SessionJob) -> Vote:
            given = annotation_of(job)
            if given and deadline_of(job) == inf:
                text = f"annotation {DEADLINE}: {given!r} is neither a time (2026-11-28T18:00:00Z) nor a duration (6h)"
                session.note(job, "Warning", "InvalidDeadline", f"{text}; the job has no deadline")
            if late(job) <= 0 or not self.arguments.reject:
                session.wake_at(session.now - late(job))
                return Vote.ABSTAIN
            text = (
                f"its deadline {format_time(deadline_of(job))} cannot be met: the limit of its run time ends "
                f"{late(job):.0f} s after it; change the annotation {DEADLINE} or the limit"
            )
            session.note(job, "Normal", "Unschedulable", text)
            job.block(REJECTED.because(detail=text))
            return Vote.REJECT

        session.add_job_order(key)
        session.add_job_enqueueable(enqueueable)


def annotation_of(job: SessionJob) -> str:
    """The annotation of the job's PodGroup; empty if there is none."""
    group = job.pod_group
    return (group.metadata.annotations or {}).get(DEADLINE, "") if group is not None else ""


def deadline_of(job: SessionJob) -> float:
    """In seconds since the epoch; infinite if the job has none, or one that cannot be read."""
    text = annotation_of(job)
    if not text:
        return inf
    for read in (parse_time, lambda given: job.created + parse_duration(given)):
        try:
            return read(text)
        except ValueError:
            continue
    return inf
