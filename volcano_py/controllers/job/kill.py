"""Ends pods of a Job: all pods, or those of a task, a partition, or one pod. Volcano: killPods."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from volcano_py.api import batch, names
from volcano_py.api.batch import Job
from volcano_py.api.core import Pod
from volcano_py.api.duration import format_duration
from volcano_py.api.kinds import JOB, POD, PODGROUP
from volcano_py.api.meta import parse_time
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Delete, Instruction, Patch, Together
from volcano_py.controllers.job import plugins
from volcano_py.controllers.job.observed import (
    Observed,
    count_pods,
    enter_phase,
    fresh_status,
    is_out_of_sync,
    is_terminating,
    job_version,
    task_of,
)
from volcano_py.controllers.job.state import NONE, SOFT, Rule, retries_are_used_up


class Target(Struct, frozen=True):
    """The part of a Job to end: a task, one of its partitions, or one of its pods."""

    task: str = ""
    pod: str = ""
    partition: str = ""


def end_pods(pods: Iterable[Pod]) -> list[Instruction]:
    """Mark pods as ended by the controller, so that policies for evicted pods ignore them; then delete them."""
    pods = [pod for pod in pods if not is_terminating(pod)]
    marks = tuple(
        Patch(
            POD,
            pod.metadata.namespace,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid, "annotations": {names.CONTROLLER_OUT_OF_SYNC: "true"}}},
            missing_ok=True,
            blame="FailedDelete",
        )
        for pod in pods
        if not is_out_of_sync(pod)
    )
    deletes = tuple(
        Delete(POD, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, blame="FailedDelete") for pod in pods
    )
    return [Together(part) for part in (marks, deletes) if part]


def kill(
    seen: Observed,
    retain: frozenset[str],
    rule: Rule | None,
    target: Target | None = None,
    *,
    counts: bool = True,
    because: tuple[str, str] | None = None,
) -> list[Instruction]:
    """End pods, and change to the phase of `rule`.

    Without a target, all pods except those in a phase of `retain` are deleted, and the PodGroup, too. The Job's version
    is increased, which identifies events of old pods. `counts`: the restart counts against `maxRetry`.
    `because`: reason and message of the new phase.
    """
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return []
    if counts and job.status.retry_count >= job.spec.max_retry - 1:
        retain = retain | SOFT  # the last attempt, of a job or a part of it: keep finished pods for their logs
    victims = [pod for pod in seen.pods if pod.status.phase not in retain]
    if target is not None:
        victims = [pod for pod in victims if _is_target(pod, target)]
    ended = {pod.metadata.uid for pod in victims}

    status = fresh_status(job)
    status.min_available = job.status.min_available or job.spec.min_available
    count_pods(status, (pod for pod in seen.pods if pod.metadata.uid not in ended))
    status.terminating += len(victims)
    changed = rule is not None and rule(job.spec, status)
    if changed:
        enter_phase(status, seen.now)
        if because:
            status.state.reason, status.state.message = because
    if target is not None:
        return _interlaced(end_pods(victims), _write(job, status))
    if changed or any(not is_terminating(pod) for pod in victims):
        status.version += 1
    # Objects to delete are derived from stored data: plugins' objects from the status that lists them, pods from the
    # phase and version that are written before they are ended. After an interruption, the next sync continues the kill.
    instructions = plugins.on_job_delete(job, status)
    if status.state.phase == batch.RESTARTING:
        plugins.note(job, status)  # they are created again immediately
    instructions += _write(job, status)
    instructions += end_pods(victims)
    podgroup = seen.podgroup
    if podgroup is not None and podgroup.metadata.deletion_timestamp is None:
        metadata = podgroup.metadata
        instructions.append(Delete(PODGROUP, metadata.namespace, metadata.name, metadata.uid))
    return instructions


def _write(job: Job, status: batch.JobStatus) -> list[Instruction]:
    status.running_duration = running_duration(job, status)
    return [status_write(JOB, job, status, "JobStatusError")] if status != job.status else []


def _interlaced(ends: list[Instruction], write: list[Instruction]) -> list[Instruction]:
    """Mark the pods, then write the status, then delete the pods: `sync` ends marked pods after an interruption."""
    marks = [one for one in ends if isinstance(one, Together) and isinstance(one.instructions[0], Patch)]
    return [*marks, *write, *(one for one in ends if one not in marks)]


def past_life(job: Job, pods: Iterable[Pod]) -> list[Pod]:
    """Pods that a restart of the whole Job should have ended, but did not."""
    if job.status.state.phase != batch.RESTARTING:
        return []
    retain = SOFT if _is_resumed(job) or retries_are_used_up(job.spec, job.status) else NONE
    return [
        pod
        for pod in pods
        if pod.status.phase not in retain and not is_terminating(pod) and job_version(pod) < job.status.version
    ]


def _is_resumed(job: Job) -> bool:
    """Whether the Job was aborted before it was restarted; its finished pods are then kept."""
    former = [condition.status for condition in job.status.conditions or ()][-2:-1]
    return former in ([batch.ABORTED], [batch.ABORTING])


def _is_target(pod: Pod, target: Target) -> bool:
    if target.pod:
        return pod.metadata.name == target.pod
    if target.task and task_of(pod) != target.task:
        return False
    if target.partition:
        return (pod.metadata.labels or {}).get(names.PARTITION_ID) == target.partition
    return bool(target.task)


def running_duration(job: Job, status: batch.JobStatus) -> str | None:
    """Time from the creation of a Job to its last phase change, in Go's duration format."""
    begin, end = job.metadata.creation_timestamp, status.state.last_transition_time
    if not begin or not end:
        return job.status.running_duration
    return format_duration(parse_time(end) - parse_time(begin))
