"""The jobs of a session when it opens: which are decided about, and why others are not. Volcano: the snapshot of the
cache, and OpenSession."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from volcano_py.scheduler.framework.deviations import Deviations
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.session_jobs import SessionJobs, SettledJobs
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS, reference
from volcano_py.scheduler.model.jobs.job import Job


class OpenedJobs(NamedTuple):
    """The jobs of a session, and those that it leaves out."""

    jobs: SessionJobs
    without_queue: list[Job]
    without_group: list[Job]
    """Native gangs with pods that wait for their PodGroup."""
    awaiting_group: list[Job]
    """Jobs of bare pods that wait for the PodGroup that the controller is about to create."""


def open_jobs(cluster: Cluster, deviations: Deviations, queues: Container[str]) -> OpenedJobs:
    """Sort the jobs of the model. Jobs that rest (`SettledJobs`) are constructed only when they are read."""
    classes = cluster.priority_classes
    default = next((p.value for p in reversed(classes.values()) if p.global_default), 0)

    def make(uid: str) -> SessionJob:
        job = cluster.jobs[uid]
        assert job.pod_group is not None
        known = classes.get(job.pod_group.spec.priority_class_name)
        of_class = default if known is None else known.value
        made = SessionJob(job, job.pod_group, of_class if job.priority is None else job.priority)
        if job.native is not None and deviations.native_places:
            # Its PodGroup may have been created again, as an upgrade to Kubernetes 1.37 requires.
            made.created = min((task.created for task in job.tasks.values() if task.created), default=job.created)
            made.created = min(made.created, job.created)
        return made

    kept = cluster.keep(SettledJobs)
    active: dict[str, SessionJob] = {}
    without_queue: list[Job] = []
    without_group: list[Job] = []
    awaiting_group: list[Job] = []
    # In the order of their UIDs, so that the order in which objects arrived has no influence.
    for uid in sorted(kept.active):
        job = cluster.jobs[uid]
        if job.pod_group is None or (job.shadow and not deviations.bare_pods):
            native = reference(uid)[0] in NATIVE_KINDS
            if job.counts[st.PENDING] and (native or (job.pod_group is None and deviations.explain_pods)):
                without_group.append(job)
        elif job.shadow and job.counts[st.PENDING] and cluster.shadow_groups.awaits_group(job):
            awaiting_group.append(job)
        elif job.queue not in queues:
            without_queue.append(job)
        else:
            active[uid] = make(uid)
    return OpenedJobs(SessionJobs(active, kept.settled, make), without_queue, without_group, awaiting_group)
