"""How long a job may run, as its user states it. Not in Volcano.

The first of: the annotation `volcano.sh/max-run-time` of the PodGroup or of the pods, Kueue's label
`kueue.x-k8s.io/max-exec-time-seconds`, and `spec.activeDeadlineSeconds` of the pods. The controllers copy the
annotation from a Job, and write there the deadline of a batch Job, and that of the Jobs of a JobSet. Of several pods
the longest counts, and one without a limit leaves the job without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from volcano_py.api.duration import parse_duration
from volcano_py.api.names import MAX_RUN_TIME
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task

KUEUE_MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
LONGEST = 366 * 86_400.0
"""Longer limits promise nothing, so that they count as none."""


def limit_of(job: Job) -> float | None:
    """The limit of a job in seconds; None: none is stated, or it is not usable."""
    if job.pod_group is not None:
        meta = job.pod_group.metadata
        found = _stated(meta.annotations or {}, meta.labels or {})
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
        if _stated(annotations, labels) != inf:
            continue
        kind, name = ("annotation", MAX_RUN_TIME) if annotations.get(MAX_RUN_TIME) else ("label", KUEUE_MAX_EXEC_TIME)
        given = annotations.get(name) or labels.get(name)
        return f"{kind} {name}: {given!r} is not a duration (2h30m) or a number of seconds, above 0 and up to 366 days"
    return ""


def limit_of_manifest(job: Mapping[str, Any]) -> float | None:
    """The limit that a Job of Volcano states, by its manifest, as its pods will have it."""
    meta = job.get("metadata") or {}
    found = _stated(meta.get("annotations") or {}, meta.get("labels") or {})
    if found is not None:
        return found if found < inf else None
    longest = 0.0
    for task in (job.get("spec") or {}).get("tasks") or ():
        template = task.get("template") or {}
        own, deadline = template.get("metadata") or {}, (template.get("spec") or {}).get("activeDeadlineSeconds")
        limit = _stated(own.get("annotations") or {}, own.get("labels") or {})
        if limit is None and deadline is not None:
            limit = _usable(float(deadline))
        if limit is None or limit == inf:
            return None
        longest = max(longest, limit)
    return longest or None


def _of_pod(task: Task) -> float | None:
    found = _stated(task.annotations, task.labels)
    if found is None and task.pod.spec.active_deadline_seconds is not None:
        found = _usable(float(task.pod.spec.active_deadline_seconds))
    return found if found is not None and found < inf else None


def _stated(annotations: Mapping[str, str], labels: Mapping[str, str]) -> float | None:
    """What annotation or label state; infinite if it is not usable, None without them."""
    text = annotations.get(MAX_RUN_TIME) or labels.get(KUEUE_MAX_EXEC_TIME)
    if text is None:
        return None
    try:
        return _usable(float(text) if text.isascii() and text.replace(".", "", 1).isdecimal() else parse_duration(text))
    except ValueError:
        return inf


def _usable(seconds: float) -> float:
    return seconds if isfinite(seconds) and 0 < seconds <= LONGEST else inf
