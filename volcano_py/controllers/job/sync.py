"""Synchronizes a Job's PodGroup and pods with its spec. Volcano: syncJob."""

from __future__ import annotations

from collections.abc import Set

from volcano_py.api import batch, names
from volcano_py.api import scheduling as pg
from volcano_py.api.batch import DEFAULT_TASK_NAME, Job, JobStatus, Task
from volcano_py.api.core import Pod
from volcano_py.api.kinds import JOB
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Emit, Instruction, Patch, Together
from volcano_py.controllers.job import plugins
from volcano_py.controllers.job.dependencies import may_start, unknown_dependencies
from volcano_py.controllers.job.failed_create import clear_condition, condition_of
from volcano_py.controllers.job.kill import end_pods, past_life, running_duration
from volcano_py.controllers.job.observed import (
    Observed,
    Unready,
    count,
    count_pods,
    enter_phase,
    fresh_status,
    is_out_of_sync,
    is_terminating,
    pod_name,
)
from volcano_py.controllers.job.pod_creates import PodCreates
from volcano_py.controllers.job.podgroup import keep_podgroup
from volcano_py.controllers.job.state import FINISHED, Rule, retries_are_used_up
from volcano_py.controllers.job.volumes import keep_claims

MOST_PODS = 150_000
"""The limit of pods that Kubernetes supports in a cluster. A larger Job is a mistake, and its pods alone would
exhaust the controller's memory."""


def sync(seen: Observed, rule: Rule | None) -> list[Instruction]:
    """PodGroup first; pods after its admission by the scheduler; then the status, and the phase of `rule`.

    Raises Unready if an object that the Job needs is missing.
    """
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return []
    if seen.queue is None:
        why = f"queue {job.spec.queue!r} not found: create it, or recreate the job in another queue"
        raise Unready("JobStatusError", why, from_outside=True)
    if seen.problems:
        waits = all(problem.startswith("spec.queue:") for problem in seen.problems)
        raise Unready("InvalidJob", "; ".join(seen.problems), from_outside=waits)
    if not job.status.state.phase:
        return [_first_status(seen)]
    pods = sum(task.replicas for task in job.spec.tasks or ())
    if pods > MOST_PODS:
        raise Unready(
            "TooManyPods",
            f"the tasks have {pods} pods, the limit of a Kubernetes cluster is {MOST_PODS}: "
            "reduce spec.tasks[].replicas",
        )

    status = fresh_status(job)
    forwarding = bool(seen.queue.spec.extend_clusters)
    instructions: list[Instruction] = []
    if forwarding and (job.metadata.annotations or {}).get(names.JOB_FORWARDING) != "true":
        body = {"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}}
        instructions.append(Patch(JOB, job.metadata.namespace, job.metadata.name, body, uid=job.metadata.uid))
    phase = job.status.state.phase
    if phase in (batch.PENDING, batch.RESTARTING):
        # Also when Restarting: a kill has deleted the plugins' objects, and new pods need them.
        instructions += plugins.on_job_add(job, status)
    else:
        instructions += plugins.on_job_update(job)
    if phase == batch.PENDING:
        instructions += keep_claims(seen, status)
    instructions += keep_podgroup(seen)

    past = {pod.metadata.uid for pod in past_life(job, seen.pods)}
    if _has_enough(seen):
        count_pods(status, seen.pods)  # it completes now: create no more pods
    elif _is_admitted(seen.podgroup):
        instructions += _keep_pods(seen, status, forwarding, past)
        instructions += clear_condition(seen.podgroup)  # not reached while pods cannot be created
    else:
        instructions += _why_not(job, seen.podgroup)
        if (failed := condition_of(seen.podgroup)) is not None:
            status.state.reason, status.state.message = failed.reason, failed.message
        count_pods(status, (pod for pod in seen.pods if pod.metadata.uid not in past))
        status.terminating += len(past)
        instructions += end_pods(pod for pod in seen.pods if pod.metadata.uid in past)
    if rule is not None and rule(job.spec, status):
        enter_phase(status, seen.now)
        if status.state.phase in FINISHED:
            status.running_duration = running_duration(job, status)  # the later cleanup then writes nothing
    if status != job.status:
        instructions.append(status_write(JOB, job, status, "JobStatusError"))
    return instructions


def _first_status(seen: Observed) -> Instruction:
    """A new Job becomes Pending; everything else follows after this write."""
    status = fresh_status(seen.job)
    plugins.note(seen.job, status)  # record the plugins before their objects are created
    status.state.phase = batch.PENDING
    enter_phase(status, seen.now)
    return status_write(JOB, seen.job, status, "JobStatusError")


def _has_enough(seen: Observed) -> bool:
    """Whether a running Job has enough successful pods."""
    job = seen.job
    if job.spec.min_success is None or job.status.state.phase != batch.RUNNING:
        return False
    done = sum(pod.status.phase == "Succeeded" and not is_terminating(pod) for pod in seen.pods)
    return done >= job.spec.min_success


def _is_admitted(podgroup: pg.PodGroup | None) -> bool:
    return (
        podgroup is not None
        and podgroup.metadata.deletion_timestamp is None
        and podgroup.status.phase not in ("", pg.PENDING)
    )


def _why_not(job: Job, podgroup: pg.PodGroup | None) -> list[Instruction]:
    """Report the scheduler's conditions of the PodGroup on the Job."""
    conditions = (podgroup.status.conditions if podgroup else None) or []
    for condition in reversed(conditions):
        if condition.status == "True":
            if condition.type == pg.SCHEDULED:
                return []
            who = f"{job.metadata.namespace}:{job.metadata.name}"
            text = f"PodGroup {who} {condition.type.lower()}, reason: {condition.message}"
            return [Emit("Warning", "PodGroupPending", text, once=True)]
    return []


def _keep_pods(seen: Observed, status: JobStatus, forwarding: bool, past: Set[str]) -> list[Instruction]:
    """Create missing pods, end surplus pods and those whose UID is in `past`, and count."""
    job = seen.job
    by_name = {pod.metadata.name: pod for pod in seen.pods}
    creates: list[tuple[Task, int]] = []
    too_many: list[Pod] = []
    events: list[Instruction] = []
    wanted = set[str]()
    fails_now = job.status.state.phase == batch.RESTARTING and retries_are_used_up(job.spec, job.status)
    for task in job.spec.tasks or ():
        task_name = task.name or DEFAULT_TASK_NAME
        missing = []
        for index in range(task.replicas):
            name = pod_name(job, task_name, index)
            wanted.add(name)
            pod = by_name.get(name)
            if pod is None:
                missing.append(index)
            elif is_terminating(pod):
                status.terminating += 1
            elif is_out_of_sync(pod) or pod.metadata.uid in past:
                too_many.append(pod)  # a kill was interrupted before it ended this pod
            else:
                count(status, task_name, pod.status.phase or "Pending")
        if fails_now:
            continue  # new pods would be created and ended at once
        if missing and not may_start(job, task, seen.pods):
            events += [_unknown_dependency(task, name) for name in unknown_dependencies(job, task)]
            continue
        for index in missing:
            creates.append((task, index))
            count(status, task_name, "Pending")
    too_many += [pod for pod in seen.pods if pod.metadata.name not in wanted]
    status.terminating += len(too_many)
    instructions = events
    if creates:
        instructions.append(Together(PodCreates(job, creates, forwarding=forwarding)))
    return instructions + end_pods(too_many)


def _unknown_dependency(task: Task, name: str) -> Instruction:
    message = f"task {task.name} depends on task {name!r}, which does not exist: correct dependsOn"
    return Emit("Warning", "FailedCreate", message, once=True)
