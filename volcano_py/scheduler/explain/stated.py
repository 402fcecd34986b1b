"""The reason that all texts of one cycle state about a job: the condition Waiting, the gang's condition and Events, and
the conditions of pods. Not in Volcano (deviation stated-reasons).

It is found once, and again when what a session saw of the job has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.scheduler.explain.blocker import failed_create, first_cause
from volcano_py.scheduler.explain.table import NOT_TRIED, means_the_same, sentence_of
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session

WAITING = "Waiting"
"""The type of the condition; its reason is the code."""


@dataclass
class KnownCauses:
    """What sessions keep: for each waiting job a hash of what its reason follows from, the reason, and its text."""

    of: dict[str, tuple[int, Cause | None, str]] = field(default_factory=dict)


def stated_cause(session: Session, job: SessionJob) -> Cause | None:
    """The first blocker of a job; None if it does not wait."""
    return _stated(session, job)[0]


def origin(session: Session, job: SessionJob) -> str:
    """The reason in one sentence, where Volcano has none or does not compare it with the others; empty without one."""
    if not session.deviations.stated_reasons:
        return job.job_fit_errors
    cause, text = _stated(session, job)
    return job.job_fit_errors if cause is None or cause.code == NOT_TRIED.code else text


def _stated(session: Session, job: SessionJob) -> tuple[Cause | None, str]:
    kept = session.cluster.keep(KnownCauses).of
    now = seen(session, job)
    known = kept.get(job.uid)
    if known is not None and known[0] == now:
        return known[1], known[2]
    cause = first_cause(session, job)
    text = "" if cause is None else _text(job, cause)
    kept[job.uid] = now, cause, text
    if len(kept) > 2 * len(session.cluster.jobs) + 100:
        for uid in [uid for uid in kept if uid not in session.cluster.jobs]:
            del kept[uid]
    return cause, text


def _text(job: SessionJob, cause: Cause) -> str:
    """The sentence; as it is written in the condition, possibly with older numbers, if its meaning is the same."""
    written = next((c for c in job.pod_group.status.conditions or () if c.type == WAITING), None)
    if written is not None and means_the_same(cause, written.reason, written.message):
        return written.message
    return sentence_of(cause)


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
            None if errors is None else (errors.nodes, errors.error, frozenset(errors.counts.items())),
            len(session.callbacks.faults),
            failed_create(job),
            session.uid if job.has_topology else "",  # it depends on how capacity is spread over the network
        )
    )
