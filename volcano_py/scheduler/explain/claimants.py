"""The jobs that hold or claim most of a resource, when a cluster admits no more jobs. Not in Volcano."""

from __future__ import annotations

import heapq

from volcano_py.scheduler.explain.reasons import amount_text
from volcano_py.scheduler.framework.session import Session

_NAMED = 3


class Claimants:
    """What was found in one session, by resource."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}


def claimants(session: Session, resource: str) -> str:
    """` by default/a (4), default/b (2) and 5 more jobs`; empty if no job of this scheduler holds or claims any."""
    known = session.shared(Claimants, Claimants).of
    if resource not in known:
        amounts = []
        for uid, job in session.cluster.jobs.items():
            claimed = job.allocated[resource]
            group = job.pod_group
            if group is not None and group.status.phase == "Inqueue" and job.min_resources is not None:
                claimed = max(claimed, job.min_resources[resource])
            if claimed > 0:
                amounts.append((claimed, uid))
        first = heapq.nsmallest(_NAMED, amounts, key=lambda a: (-a[0], a[1]))
        named = ", ".join(f"{uid} ({amount_text(resource, amount)})" for amount, uid in first)
        more = len(amounts) - len(first)
        also = f" and {more} more {'job' if more == 1 else 'jobs'}" if more else ""
        known[resource] = f" by {named}{also}" if named else ""
    return known[resource]
