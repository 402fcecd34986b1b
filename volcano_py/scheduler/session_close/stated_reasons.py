"""The condition Waiting of PodGroups: the first blocker as one sentence with numbers. Not in Volcano (deviation
stated-reasons).

A reason is found again only when what a session saw of the job has changed, and written again only when its meaning
has. Which reason was written last is read from the PodGroup, so that a restart changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from volcano_py.api.meta import format_time
from volcano_py.api.scheduling import PodGroupCondition
from volcano_py.scheduler.explain.rejected_pods import rejection_of
from volcano_py.scheduler.explain.stated import WAITING, origin, seen, stated_cause
from volcano_py.scheduler.explain.table import NOT_TRIED, meaning_of, means_the_same, sentence_of
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.jobs import status as st

_PHASES = ("Unknown", "Pending", "Inqueue")


class Stated(NamedTuple):
    """The reason of one job."""

    seen: int
    """A hash of what the session saw."""
    cause: Cause
    reported: bool
    """An Event has stated it."""


@dataclass
class StatedReasons:
    """What sessions keep: the reason of each waiting job."""

    of: dict[str, Stated] = field(default_factory=dict)

    def events(self, session: Session, key: tuple[str, str], events: list[plan.Event]) -> list[plan.Event]:
        """Of the Events about a PodGroup, those to write: one states the reason, when its meaning is new."""
        stated = self.of.get(key[1]) if key[0] == "PodGroup" else None
        if stated is None:
            return events
        others = [e for e in events if e.reason != "Unschedulable"]
        about = [e for e in events if e.reason == "Unschedulable"]
        if stated.reported or not about:
            return others
        self.of[key[1]] = stated._replace(reported=True)
        last = about[-1]
        job = session.jobs.get(key[1])
        sentence = sentence_of(stated.cause) if job is None else origin(session, job) or sentence_of(stated.cause)
        also = stated.cause.code if sentence in last.message else f"{stated.cause.code}: {sentence}"
        text = f"{last.message} ({also})"
        event = plan.Event(last.kind, last.namespace, last.name, last.uid, "Warning", last.reason, text)
        return [*others, event]


def state_reason(session: Session, job: SessionJob) -> bool:
    """Set the condition Waiting of a job; whether its reason means the same as at the last session."""
    if not session.deviations.stated_reasons:
        return False
    kept = session.cluster.keep(StatedReasons).of
    waits = job.counts[st.PENDING] or job.is_pending() or job.counts[st.PIPELINED] or rejection_of(job.pod_group)
    if job.phase not in _PHASES or not waits:
        kept.pop(job.uid, None)
        _remove(job)
        return False
    known = kept.get(job.uid)
    now = seen(session, job)
    written = next((c for c in job.pod_group.status.conditions or () if c.type == WAITING), None)
    lost = known is not None and (written is None or written.reason != known.cause.code)  # another writer of the status
    if known is not None and known.seen == now and not lost:
        return True
    cause = stated_cause(session, job)
    if written is not None and cause is not None and cause.code == NOT_TRIED.code:
        return True  # the reason of the last try stays
    if cause is None:
        kept.pop(job.uid, None)
        _remove(job)
        return False
    if known is None:  # new, or seen by an earlier process
        same = written is not None and means_the_same(cause, written.reason, written.message)
    else:
        same = not lost and meaning_of(known.cause) == meaning_of(cause)
    reported = same and (known is None or known.reported)
    if lost and known is not None and meaning_of(known.cause) == meaning_of(cause):
        reported = known.reported
    kept[job.uid] = Stated(now, cause, reported)
    if len(kept) > len(session.cluster.jobs):
        for uid in [uid for uid in kept if uid not in session.cluster.jobs]:
            del kept[uid]
    if not same:
        _set(session, job, cause)
    return same


def is_reported(session: Session, job: SessionJob) -> bool:
    """Whether an Event has stated the job's reason."""
    stated = session.cluster.keep(StatedReasons).of.get(job.uid)
    return stated is not None and stated.reported


def _set(session: Session, job: SessionJob, cause: Cause) -> None:
    condition = PodGroupCondition(
        type=WAITING,
        status="True",
        transition_id=session.uid,
        last_transition_time=format_time(session.now),
        reason=cause.code,
        message=sentence_of(cause),
    )
    session.set_condition(job, condition)


def _remove(job: SessionJob) -> None:
    conditions = job.pod_group.status.conditions if job.conditions is None else job.conditions
    for condition in conditions or ():
        if condition.type == WAITING:
            job.conditions = [c for c in conditions or () if c.type != WAITING]
            return
