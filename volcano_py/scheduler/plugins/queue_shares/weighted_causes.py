"""Why a queue with a share by weight gets nothing more. Volcano: texts in proportion."""

from __future__ import annotations

from volcano_py.scheduler.explain.table import ENQUEUE_LIMIT, QUEUE_LIMIT, QUEUE_OVERUSED, QUEUE_SHARE
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU
from volcano_py.scheduler.plugins.queue_shares.weighted import Attributes


def overused_cause(session: Session, q: Attributes) -> Cause:
    """The resource of which the queue holds the largest part, of those where it holds its share."""
    tightest = max(q.deserved.names(), key=lambda d: (q.allocated[d] / max(q.deserved[d], 1.0), d), default=CPU)
    return QUEUE_OVERUSED.because(
        queue=q.name,
        resource=tightest,
        held=q.allocated[tightest],
        limit=q.deserved[tightest],
        total=session.total[tightest],
    )


def share_cause(session: Session, q: Attributes, task: Task) -> Cause:
    """Why a queue cannot hold a task: the task would exceed the queue's capability, or what the queue deserves."""
    lacking = [(d, n) for d, n in task.spec_class.demands if q.allocated[d] + n > q.deserved[d]]
    d, amount = lacking[0] if lacking else (CPU, 0.0)
    held, limit = q.allocated[d], q.deserved[d]
    if q.capability is not None and limit >= q.capability[d] > 0:
        return QUEUE_LIMIT.because(
            queue=q.name,
            path=q.name,
            resource=d,
            requested=amount,
            held=held,
            limit=limit,
            missing=held + amount - limit,
        )
    return QUEUE_SHARE.because(
        queue=q.name,
        resource=d,
        requested=amount,
        held=held,
        limit=limit,
        missing=held + amount - limit,
        total=session.total[d],
    )


def admission_cause(q: Attributes, minimum: Resource, lacking: list[str]) -> Cause:
    """Why the queue does not admit a job with this minimum."""
    d = next(iter(lacking), CPU)
    held, limit = q.allocated[d] + q.inqueue[d] - q.elastic[d], q.real_capability[d]
    return ENQUEUE_LIMIT.because(
        queue=q.name,
        path=q.name,
        resource=d,
        requested=minimum[d],
        held=held,
        limit=limit,
        missing=held + minimum[d] - limit,
    )
