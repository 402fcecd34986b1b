"""shuffle: evicts the running tasks that plugins name."""

from __future__ import annotations

from tests.reference.session import Session


def shuffle(session: Session) -> None:
    running = []
    for job in session.jobs.values():
        running += sorted(job.with_status("Running"), key=lambda t: t.key)  # Volcano iterates over a map
    for victim in session.votes.victim_tasks(running):
        session.start_eviction(victim)
        session.evicted.append(victim.key)
