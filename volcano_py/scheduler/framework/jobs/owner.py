"""Whose a job is, for plugins that compare or learn by owner. Not in Volcano."""

from __future__ import annotations

from volcano_py.scheduler.model.jobs.job import Job

OWNER = "volcano.sh/owner"


def owner_of(job: Job, key: str = OWNER) -> str:
    """The value of a label, or else of an annotation, of the PodGroup; without it the namespace."""
    found = None
    if job.pod_group is not None:
        meta = job.pod_group.metadata
        found = (meta.labels or {}).get(key) or (meta.annotations or {}).get(key)
    return found or job.namespace
