"""Whether any job waits, kept up to date by the jobs that changed. Not in Volcano, which runs a cycle every second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import Cluster

WAITING_PHASES = ("", "Pending")
"""Phases of PodGroups that wait to be admitted."""


@dataclass
class PendingJobs:
    """The jobs that have pending tasks, or that wait to be admitted. One object per model (`Cluster.keep`)."""

    _waiting: set[str] = field(default_factory=set)
    _position: int = -1

    def any(self, cluster: Cluster) -> bool:
        """Whether some job waits now."""
        changed: Iterable[str] | None = None
        if self._position >= 0:
            changed = cluster.job_changes.since(self._position)
        self._position = cluster.job_changes.position
        if changed is None:
            changed = cluster.jobs
            self._waiting.clear()
        for uid in changed:
            job = cluster.jobs.get(uid)
            if job is not None and waits(job):
                self._waiting.add(uid)
            else:
                self._waiting.discard(uid)
        return bool(self._waiting)


def waits(job: Job) -> bool:
    """Whether a job has pending tasks, or waits to be admitted."""
    group = job.pod_group
    return group is not None and bool(job.counts[st.PENDING] or group.status.phase in WAITING_PHASES)
