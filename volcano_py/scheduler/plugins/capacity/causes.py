"""Why a queue does not admit a job or cannot hold a task: the queue on the path that is at its limit, with its
amounts."""

from __future__ import annotations

from volcano_py.scheduler.explain.table import ENQUEUE_LIMIT, QUEUE_GUARANTEES, QUEUE_LIMIT
from volcano_py.scheduler.framework.cause import Cause, Value
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueNode, QueueTree


def limit_cause(session: Session, tree: QueueTree, node: QueueNode, task: Task) -> Cause | None:
    """The first queue upwards that would exceed its limit with a task."""
    for q in tree.upwards(node):
        for d, amount in task.spec_class.demands:
            if q.allocated[d] + amount > q.real_capability[d]:
                q = _owner(tree, q, d)
                held, limit = q.allocated[d], q.real_capability[d]
                numbers: dict[str, Value] = {
                    "queue": q.name,
                    "path": _path(node),
                    "resource": d,
                    "requested": amount,
                    "held": held,
                    "limit": limit,
                    "missing": held + amount - limit,
                }
                others, guaranteed = _guaranteed_to_others(session, tree, q, d)
                if guaranteed and limit + guaranteed > held + amount - 1:
                    return QUEUE_GUARANTEES.because(**numbers, guaranteed=guaranteed, others=others)
                return QUEUE_LIMIT.because(**numbers)
    return None


def admission_cause(
    session: Session, tree: QueueTree, node: QueueNode, q: QueueNode, minimum: Resource, lacking: list[str]
) -> Cause:
    """The first queue upwards that does not admit a job with this minimum."""
    d = next(iter(lacking), CPU)
    q = _owner(tree, q, d)
    held = q.allocated[d] + q.inqueue[d] - q.elastic[d]
    return ENQUEUE_LIMIT.because(
        queue=q.name,
        path=_path(node),
        resource=d,
        requested=minimum[d],
        held=held,
        limit=q.admits[d],
        missing=held + minimum[d] - q.admits[d],
    )


def _owner(tree: QueueTree, node: QueueNode, resource: str) -> QueueNode:
    """The queue whose spec sets the limit of a queue: the queue itself, or the ancestor from which it inherits the
    limit."""
    for q in tree.upwards(node):
        named = q.queue.capability
        if named is not None and 0 < named[resource] <= node.real_capability[resource]:
            return q
    return node


def _path(node: QueueNode) -> str:
    return "/".join([*(q.name for q in node.path), node.name])


def _guaranteed_to_others(session: Session, tree: QueueTree, node: QueueNode, resource: str) -> tuple[str, float]:
    """The siblings of a queue whose guarantees lower its limit, and the sum of these guarantees of a resource."""
    parent = node.path[-1] if node.path else None
    above = parent.real_capability[resource] if parent is not None else session.admissible[resource]
    own = node.capability[resource] or above
    if node.real_capability[resource] >= min(own, above):
        return "", 0.0
    beside = parent.children if parent is not None else tree.nodes.values()
    named = {q.name: q.guarantee[resource] for q in beside if q is not node and q.guarantee[resource] > 0}
    return ", ".join(sorted(named)), sum(named.values())
