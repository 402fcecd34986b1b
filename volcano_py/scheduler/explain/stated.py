"""The reason that all texts of one cycle state about a job: the condition Waiting, the gang's condition and Events, and
the conditions of pods. Not in Volcano (deviation stated-reasons).

It is found once, and again when what a session saw of the job has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.scheduler.explain.blocker import first_cause
from volcano_py.scheduler.explain.table import NOT_TRIED, sentence_of
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob


@dataclass
class KnownCauses:
    """What sessions keep: for each waiting job a hash of what its reason follows from, and the reason."""

    of: dict[str, tuple[int, Cause | None]] = field(default_factory=dict)


def stated_cause(session: Session, job: SessionJob) -> Cause | None:
    """The first blocker of a job; None if it does not wait."""
    kept = session.cluster.keep(KnownCauses).of
    now = seen(session, job)
    known = kept.get(job.uid)
    if known is not None and known[0] == now:
        return known[1]
    cause = first_cause(session, job)
    kept[job.uid] = now, cause
    if len(kept) > 2 * len(session.cluster.jobs) + 100:
        for uid in [uid for uid in kept if uid not in session.cluster.jobs]:
            del kept[uid]
    return cause


def origin(session: Session, job: SessionJob) -> str:
    """The reason in one sentence, where Volcano has none or does not compare it with the others; empty without one."""
    if not session.deviations.stated_reasons:
        return job.job_fit_errors
    cause = stated_cause(session, job)
    return job.job_fit_errors if cause is None or cause.code == NOT_TRIED.code else sentence_of(cause)


def seen(session: Session, job: SessionJob) -> int:
    """Whatever the reason follows from, as one number."""
    errors = job.fit_errors[min(job.fit_errors)] if job.fit_errors else None
    cause = job.cause or (None if job.fit_errors else session.queue_causes.get(job.queue))
    return hash(
        (
            job.phase,
            tuple(job.counts),
            session.queues[job.queue].state,
            job.job_fit_errors,
            None if cause is None else (cause.code, *cause.fields.values()),
            None if errors is None else (errors.nodes, errors.error, *sorted(errors.counts.items())),
            len(session.callbacks.faults),
            session.uid if job.has_topology else "",  # it depends on how capacity is spread over the network
        )
    )
