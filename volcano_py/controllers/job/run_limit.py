"""Ends a Job that has run for as long as its user states, if the user or the administrator has chosen so.

Not in Volcano. The limit is the annotation `volcano.sh/max-run-time` of the Job, or Kueue's label. What is learned or
configured as a default never ends a Job. The choice is the annotation `volcano.sh/on-max-run-time`, an action, or the
flag `--on-max-run-time` for Jobs without it. A run begins when the first of its pods starts; a restart of the whole Job
begins another one. Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from msgspec import Struct

from volcano_py.api import batch, bus, names
from volcano_py.api.batch import Job
from volcano_py.api.core import Pod
from volcano_py.api.duration import format_duration
from volcano_py.api.meta import parse_time
from volcano_py.api.run_time import stated_run_time, where_stated
from volcano_py.controllers.job.observed import is_terminating, job_version

ACTIONS = (bus.TERMINATE_JOB, bus.ABORT_JOB, bus.COMPLETE_JOB, bus.RESTART_JOB)
"""What can be done. Only RestartJob, which a user must choose, is a retry, and counts against `maxRetry`."""
_RUNS = (batch.PENDING, batch.RUNNING)
"""A Job is Pending again while pods above the gang's minimum are missing."""


class EnforcedLimit(Struct, frozen=True):
    """How long the pods of a Job may run, and what happens then."""

    seconds: float
    action: str
    where: str
    """Where the limit is stated."""

    @property
    def message(self) -> str:
        """For the Event and the status."""
        limit = format_duration(self.seconds)
        return f"the Job has run for {limit}, its limit ({self.where}); the action is {self.action}"


def enforced_limit(job: Job, default: str = "") -> EnforcedLimit | None:
    """The limit at which the controller acts; None: the Job has none, or it is not enforced. `default`: the action of
    the flag."""
    annotations = job.metadata.annotations or {}
    chosen = annotations.get(names.ON_MAX_RUN_TIME)
    if chosen not in ACTIONS:
        chosen = default
    if not chosen:
        return None
    seconds = stated_run_time(annotations, job.metadata.labels or {})
    if seconds is None or seconds == inf:
        return None
    return EnforcedLimit(seconds, chosen, where_stated(annotations))


def problem_of(job: Job) -> str:
    """What is wrong with the choice of the user; empty: nothing."""
    annotations, labels = job.metadata.annotations or {}, job.metadata.labels or {}
    given = annotations.get(names.ON_MAX_RUN_TIME)
    if not given:
        return ""
    where = f"annotation {names.ON_MAX_RUN_TIME}"
    if given not in ACTIONS:
        return f"{where} is {given!r}, and must be one of {', '.join(ACTIONS)}; it is not used"
    seconds = stated_run_time(annotations, labels)
    if seconds is None:
        return f"{where} has no effect without a limit; set the annotation {names.MAX_RUN_TIME}"
    return f"{where} has no effect: {where_stated(annotations)} is not usable" if seconds == inf else ""


def end_of_run(job: Job, pods: Iterable[Pod], limit: EnforcedLimit) -> float | None:
    """When the limit ends, in seconds since the epoch; None: nothing of the Job runs."""
    if job.status.state.phase not in _RUNS:
        return None
    ours = [pod for pod in pods if not is_terminating(pod) and job_version(pod) >= job.status.version]
    if not any(pod.status.phase == "Running" for pod in ours):
        return None
    starts = [parse_time(pod.status.start_time) for pod in ours if pod.status.start_time]
    return min(starts) + limit.seconds if starts else None
