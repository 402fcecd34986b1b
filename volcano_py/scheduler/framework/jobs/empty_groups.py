"""Admitted groups whose pods do not exist: their claim on capacity ends after a while. Not in Volcano.

A PodGroup that is admitted claims its minimum before its pods exist, so that their controller can create them. If the
pods were deleted, or cannot be created, Volcano's claim lasts as long as the PodGroup, and no other group is admitted
in its place. Here it ends after `CLAIM_SECONDS` with fewer pods than the group's minimum. The group stays admitted:
when its pods exist, it claims again.

The seconds count from the first session that finds the group without its pods, so a restart begins them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st

CLAIM_SECONDS = 300.0
"""How long an admitted group claims capacity for pods that do not exist."""


@dataclass
class EmptyGroups:
    """State between sessions: admitted groups without their pods → since when, in seconds since the epoch."""

    since: dict[str, float] = field(default_factory=dict)


def end_claims(session: Session) -> None:
    """Called when a session opens: mark the jobs whose claim has ended, and state it on their PodGroups."""
    if not session.deviations.claims_need_pods:
        return
    kept = session.cluster.keep(EmptyGroups)
    found: dict[str, float] = {}
    for job in session.jobs.active():
        if job.phase != "Inqueue" or job.model.shadow:
            continue
        pods = len(job.tasks) - job.counts[st.FAILED]
        if pods >= max(job.min_available, 1):
            continue
        since = found[job.uid] = min(kept.since.get(job.uid, session.now), session.now)
        if session.now - since < CLAIM_SECONDS:
            session.wake_at(since + CLAIM_SECONDS)
            continue
        job.claims_nothing = True
        session.note(
            job,
            "Warning",
            "NoPods",
            f"the group was admitted, but {pods} of {max(job.min_available, 1)} pods exist since more than "
            f"{CLAIM_SECONDS:.0f} s: it claims no capacity until they exist; see the Events of what creates its pods",
        )
    kept.since = found
