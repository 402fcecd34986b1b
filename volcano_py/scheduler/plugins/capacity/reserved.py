"""Capacity of queues that is reserved for pods whose queue-admission gate was removed. Volcano: the reserved tasks of
the capacity plugin.

Such a pod has passed the capacity check of its queue. Until it is placed, no other pod gets the capacity it requests.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.resource import Resource

Reserved = dict[str, dict[str, Resource]]
"""By queue: the request of each pod that was admitted and is not placed, by the task's key."""


def reserved(session: Session) -> Reserved:
    """The reservations when a session opens: pods whose queue-admission gate is removed or being removed."""
    found: Reserved = {}
    removed = session.cluster.reported.gates_removed
    for job in session.jobs.active():
        if not job.model.gated_by_queue or not job.counts[st.PENDING]:
            continue
        for task in session.pending(job):
            if task.needs_queue_admission and (not task.sched_gated or task.key in removed):
                found.setdefault(job.queue, {})[task.key] = task.request
    return found
