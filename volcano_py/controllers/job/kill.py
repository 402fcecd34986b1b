"""Ending the pods of a job: all of them, or those of a task, a partition, or one. Volcano: killPods."""

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
from volcano_py.controllers.job.state import NONE, SOFT, Rule


class Target(Struct, frozen=True):
    """The part of a job that is ended: a task, one of its partitions, or one of its pods."""

    task: str = ""
    pod: str = ""
    partition: str = ""


def end_pods(pods: Iterable[Pod]) -> list[Instruction]:
    """Mark pods as ended by us, so that the policies for evicted pods stay quiet, and then delete them."""
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
    seen: Observed, retain: frozenset[str], rule: Rule | None, target: Target | None = None, *, counts: bool = True
) -> list[Instruction]:
    """End pods, and move to the phase that `rule` says.

    Without a target all pods go but those in a phase of `retain`, and the PodGroup with them; the job's version grows,
    by which events of its old pods are known. `counts`: this is one of the job's `maxRetry`, perhaps the last.
    """
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return []
    if target is None:
        if counts and job.status.retry_count >= job.spec.max_retry - 1:
            retain = retain | SOFT  # the last try: leave something to look at
        victims = [pod for pod in seen.pods if pod.status.phase not in retain]
    else:
        victims = [pod for pod in seen.pods if _is_target(pod, target)]
    ended = {pod.metadata.uid for pod in victims}

    status = fresh_status(job)
    status.min_available = job.status.min_available or job.spec.min_available
    count_pods(status, (pod for pod in seen.pods if pod.metadata.uid not in ended))
    status.terminating += len(victims)
    changed = rule is not None and rule(job.spec, status)
    if changed:
        enter_phase(status, seen.now)
    if target is not None:
        return _interlaced(end_pods(victims), _write(job, status))
    if changed or any(not is_terminating(pod) for pod in victims):
        status.version += 1
    # What has to go is known from what is stored: plugins' objects from the status that lists them, pods from the phase
    # and version that are written before they are ended. Wherever a kill is broken off, the next look goes on with it.
    instructions = plugins.on_job_delete(job, status)
    if status.state.phase == batch.RESTARTING:
        plugins.note(job, status)  # they are made again at once
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
    """The pods are marked, then the status is written, then they are deleted: `sync` ends what is marked."""
    marks = [one for one in ends if isinstance(one, Together) and isinstance(one.instructions[0], Patch)]
    return [*marks, *write, *(one for one in ends if one not in marks)]


def past_life(job: Job, pods: Iterable[Pod]) -> list[Pod]:
    """Pods that a restart of the whole job was to end and has not reached."""
    if job.status.state.phase != batch.RESTARTING:
        return []
    retain = SOFT if _is_resumed(job) or job.status.retry_count >= job.spec.max_retry else NONE
    return [
        pod
        for pod in pods
        if pod.status.phase not in retain and not is_terminating(pod) and job_version(pod) < job.status.version
    ]


def _is_resumed(job: Job) -> bool:
    """Whether it was stopped before it was restarted; what had ended then stays."""
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
    """From the creation of a job to its last change of phase, as Go writes durations."""
    begin, end = job.metadata.creation_timestamp, status.state.last_transition_time
    if not begin or not end:
        return job.status.running_duration
    return format_duration(parse_time(end) - parse_time(begin))
