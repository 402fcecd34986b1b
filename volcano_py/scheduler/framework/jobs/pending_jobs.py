"""Whether any job waits, kept up to date by the jobs that changed. Not in Volcano, which runs a cycle every second."""

from __future__ import annotations

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job

WAITING_PHASES = ("", "Pending")
"""Phases of PodGroups that wait to be admitted."""


def any_waits(cluster: Cluster) -> bool:
    """Whether a job has pending tasks, or waits to be admitted."""
    return bool(state_of(cluster, "pending jobs", None, _build, _apply))


def waits(job: Job) -> bool:
    """Whether this job has pending tasks, or waits to be admitted."""
    group = job.pod_group
    if group is None:
        return False
    if job.counts[st.PENDING]:
        return True
    # Plain pods are admitted with their group; its phase follows with their next event.
    return not job.shadow and group.status.phase in WAITING_PHASES


def _build(cluster: Cluster) -> set[str]:
    return {uid for uid, job in cluster.jobs.items() if waits(job)}


def _apply(waiting: set[str], cluster: Cluster, changed: set[str]) -> None:
    for uid in changed:
        job = cluster.jobs.get(uid)
        if job is not None and waits(job):
            waiting.add(uid)
        else:
            waiting.discard(uid)
