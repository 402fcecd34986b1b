"""What admitted jobs still need. Volcano: GetInqueueResource, DeductSchGatedResources."""

from __future__ import annotations

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY


def inqueue_resource(job: SessionJob) -> Resource:
    """The part of the job's minimum that it does not hold yet."""
    claim = Resource()
    minimum = job.min_resources
    if minimum is None:
        return claim
    named = job.pod_group.spec.min_resources or {}
    for name in minimum.keys():
        if name in (CPU, MEMORY) and name not in named:
            continue
        if name == EPHEMERAL_STORAGE:  # no scalar: Volcano counts it for no job
            continue
        missing = minimum[name] - job.allocated[name]
        if missing > 0 or (name not in (CPU, MEMORY) and name not in job.allocated):
            claim[name] = missing
    return claim


def gated_deducted(job: SessionJob, amount: Resource) -> Resource:
    """The amount without the tasks that have a scheduling gate of another controller, whatever their status."""
    if not job.model.gated:
        return amount
    gated = Resource()
    for task in job.tasks.values():
        if task.sched_gated and not task.only_queue_gate:
            gated.add(task.request)
    if gated.is_empty():
        return amount
    left = amount.clone()
    for name in gated.keys():
        if name in left:
            left[name] = max(left[name] - gated[name], 0.0)
    return left


def format_names(prefix: str, verb: str, names: list[str]) -> str:
    """`prefix: verb a, verb b`; only the prefix if there are no names."""
    return f"{prefix}: {', '.join(f'{verb} {name}' for name in names)}" if names else prefix
