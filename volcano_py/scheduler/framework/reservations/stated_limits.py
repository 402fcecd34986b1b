"""How long a job may run, as its user states it. Not in Volcano.

The first of: the annotation `volcano.sh/max-run-time` of the PodGroup or of the pods, Kueue's label
`kueue.x-k8s.io/max-exec-time-seconds`, and `spec.activeDeadlineSeconds` of the pods. The controllers copy the
annotation from a Job, and write there the deadline of a batch Job, and that of the Jobs of a JobSet. Of several pods
the longest counts, and one without a limit leaves the job without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from volcano_py.api.names import MAX_RUN_TIME
from volcano_py.api.run_time import KUEUE_MAX_EXEC_TIME, stated_run_time, usable_run_time, where_stated
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task


def limit_of(job: Job) -> float | None:
    """The limit of a job in seconds; None: none is stated, or it is not usable."""
    if job.pod_group is not None:
        meta = job.pod_group.metadata
        found = stated_run_time(meta.annotations or {}, meta.labels or {})
        if found is not None:
            return found if found < inf else None
    longest = 0.0
    for task in job.tasks.values():
        if task.status in (st.SUCCEEDED, st.FAILED):
            continue
        limit = _of_pod(task)
        if limit is None:
            return None
        longest = max(longest, limit)
    return longest or None


def unusable_limit(job: Job) -> str:
    """Which stated limit of a job counts as none, and why; empty: none."""
    stated = [job.pod_group.metadata] if job.pod_group is not None else []
    stated += [task.pod.metadata for task in job.tasks.values()]
    for meta in stated:
        annotations, labels = meta.annotations or {}, meta.labels or {}
        if stated_run_time(annotations, labels) != inf:
            continue
        given = annotations.get(MAX_RUN_TIME) or labels.get(KUEUE_MAX_EXEC_TIME)
        where = where_stated(annotations)
        return f"{where}: {given!r} is not a duration (2h30m) or a number of seconds, above 0 and up to 366 days"
    return ""


def limit_of_manifest(job: Mapping[str, Any]) -> float | None:
    """The limit that a Job of Volcano states, by its manifest, as its pods will have it."""
    meta = job.get("metadata") or {}
    found = stated_run_time(meta.get("annotations") or {}, meta.get("labels") or {})
    if found is not None:
        return found if found < inf else None
    longest = 0.0
    for task in (job.get("spec") or {}).get("tasks") or ():
        template = task.get("template") or {}
        own, deadline = template.get("metadata") or {}, (template.get("spec") or {}).get("activeDeadlineSeconds")
        limit = stated_run_time(own.get("annotations") or {}, own.get("labels") or {})
        if limit is None and deadline is not None:
            limit = usable_run_time(float(deadline))
        if limit is None or limit == inf:
            return None
        longest = max(longest, limit)
    return longest or None


def _of_pod(task: Task) -> float | None:
    found = stated_run_time(task.annotations, task.labels)
    if found is None and task.pod.spec.active_deadline_seconds is not None:
        found = usable_run_time(float(task.pod.spec.active_deadline_seconds))
    return found if found is not None and found < inf else None
