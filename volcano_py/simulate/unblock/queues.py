"""Changes of queues, quotas and priorities."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from volcano_py.api.core import PriorityClass
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.quantity import format_milli
from volcano_py.api.scheduling import Queue, QueueSpec, QueueStatus
from volcano_py.scheduler.explain.blocker import missing_tasks
from volcano_py.scheduler.explain.reasons import amount_text
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.simulate.unblock.suggestion import Change
from volcano_py.simulate.unblock.trials import Edit

replace = msgspec.structs.replace


def _quantity(resource: str, amount: float) -> str:
    return str(int(amount)) if resource in ("memory", "pods") else format_milli(int(amount))


def raise_limit(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Raise spec.capability, and spec.deserved of a queue that sets it, by the missing amount."""
    name, resource = str(cause.fields["queue"]), str(cause.fields["resource"])
    queue = session.queues.get(name)
    if queue is None:
        return
    wanted = sum(t.request[resource] for t in missing_tasks(session, job))
    missing = float(cause.fields.get("missing", wanted))
    limit = float(cause.fields["limit"]) + missing
    spec = queue.object.spec
    if spec.capability and resource in spec.capability:
        raised = {**spec.capability, resource: _quantity(resource, limit)}
        edit = Edit("Queue", "", name, replace(queue.object, spec=replace(spec, capability=raised)))
        text = f"raise spec.capability of queue {name} by {amount_text(resource, missing)} {resource}, "
        yield Change("raise-limit", text + f"to {amount_text(resource, limit)}", [edit])


def raise_weight(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Double the weight, until it exceeds the sum of all others."""
    name = str(cause.fields["queue"])
    queue = session.queues.get(name)
    for factor in (2, 4, 8, 16, 64) if queue is not None and len(session.queues) > 2 else ():
        assert queue is not None
        weight = max(queue.weight, 1) * factor
        edit = Edit("Queue", "", name, replace(queue.object, spec=replace(queue.object.spec, weight=weight)))
        yield Change("raise-weight", f"raise spec.weight of queue {name} from {queue.weight} to {weight}", [edit])


def lower_guarantees(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Lower the guarantee of one other queue by the missing amount."""
    resource, missing = str(cause.fields["resource"]), float(cause.fields["missing"])
    for name in str(cause.fields["others"]).split(", "):
        queue = session.queues.get(name)
        if queue is None or queue.guarantee is None or queue.object.spec.guarantee is None:
            continue
        left = max(queue.guarantee[resource] - missing, 0.0)
        amounts = {**(queue.object.spec.guarantee.resource or {}), resource: _quantity(resource, left)}
        guarantee = replace(queue.object.spec.guarantee, resource=amounts)
        edit = Edit("Queue", "", name, replace(queue.object, spec=replace(queue.object.spec, guarantee=guarantee)))
        text = f"lower spec.guarantee of queue {name} to {amount_text(resource, left)} {resource}"
        yield Change("lower-guarantee", text, [edit])


def open_queue(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    queue = session.queues[str(cause.fields["queue"])]
    opened = replace(queue.object, status=replace(queue.object.status, state="Open"))
    yield Change("open-queue", f"open queue {queue.name}", [Edit("Queue", "", queue.name, opened)])


def create_queue(session: Session, uid: str, name: str) -> Iterator[Change]:
    """Create the queue of a job."""
    made = Queue(
        metadata=ObjectMeta(name=name), spec=QueueSpec(weight=1, parent="root"), status=QueueStatus(state="Open")
    )
    yield Change("create-queue", f"create queue {name}", [Edit("Queue", "", name, made)])


def move_to_queue(session: Session, uid: str, avoid: str) -> Iterator[Change]:
    """Move the job to another queue, `default` first."""
    group = session.cluster.jobs[uid].pod_group
    parents = set(session.queue_parents.values())
    usable = [q for q in session.queues.values() if q.state == "Open" and q.name not in parents | {"root", avoid}]
    for queue in sorted(usable, key=lambda q: (q.name != "default", q.name))[:3]:
        if group is not None:
            moved = replace(group, spec=replace(group.spec, queue=queue.name))
            edit = Edit("PodGroup", group.metadata.namespace, group.metadata.name, moved)
            yield Change("move-to-queue", f"move the job to queue {queue.name}", [edit])


def raise_quota(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Raise the hard limit of a ResourceQuota by the missing amount."""
    name, resource = str(cause.fields["quota"]), str(cause.fields["resource"])
    quota = session.cluster.others.get("ResourceQuota", {}).get(f"{job.namespace}/{name}")
    if quota is None:
        return
    limit = float(cause.fields["limit"]) + float(cause.fields["missing"])
    hard = dict(quota.status.hard or {})
    for key in (resource, f"requests.{resource}", f"limits.{resource}"):
        if key in hard:
            hard[key] = _quantity(resource, limit)
    edit = Edit("ResourceQuota", job.namespace, name, replace(quota, status=replace(quota.status, hard=hard)))
    yield Change("raise-quota", f"raise {resource} of ResourceQuota {name} to {amount_text(resource, limit)}", [edit])


def raise_priority(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Use a higher PriorityClass, the lowest first; without one, create a class."""
    classes = session.cluster.priority_classes.values()
    higher = [c for c in classes if c.value > job.priority and not c.metadata.name.startswith("system-")]
    for each in sorted(higher, key=lambda c: (c.value, c.metadata.name))[:3]:
        yield _with_class(job, each, [])
    if not higher:
        top = max((c.value for c in classes if not c.metadata.name.startswith("system-")), default=0)
        made = PriorityClass(metadata=ObjectMeta(name="higher"), value=max(top, job.priority) + 1)
        yield _with_class(job, made, [Edit("PriorityClass", "", "higher", made)])


def _with_class(job: SessionJob, chosen: PriorityClass, edits: list[Edit]) -> Change:
    name, group = chosen.metadata.name, job.pod_group
    changed = replace(group, spec=replace(group.spec, priority_class_name=name))
    edits = [*edits, Edit("PodGroup", job.namespace, job.name, changed)]
    for task in job.model.tasks.values():
        spec = replace(task.pod.spec, priority_class_name=name, priority=chosen.value, preemption_policy=None)
        edits.append(Edit("Pod", task.namespace, task.name, replace(task.pod, spec=spec)))
    return Change("raise-priority", f"raise the job's priority to {chosen.value} (PriorityClass {name})", edits)
