"""Which running pods may be moved, and what each move costs. Not in Volcano.

The annotation `volcano.sh/movable` of a pod or its PodGroup permits it: `true`, or `checkpoint` if the pod saves its
work when it is terminated (a preStop hook, or SIGTERM). A move costs the work since the start of the pod, or with a
checkpoint its grace period at most, times the share of the cluster that the pod requests. Only a pod with a controller
is moved: no one else creates it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.reservations.largest_share import largest_share
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.pdb import Budgets

MOVABLE = "volcano.sh/movable"
PLAIN, CHECKPOINT = "true", "checkpoint"
GRACE = 30.0
"""Seconds; Kubernetes' default of terminationGracePeriodSeconds."""


class MovablePod(Struct):
    """A pod that may be moved."""

    task: Task
    share: float
    """What it requests, as a share of the cluster by its largest resource."""
    cost: float


def movable_pods(session: Session, running: Iterable[Task], longest: float) -> dict[int, list[MovablePod]]:
    """By column of the node, the cheapest first. `longest`: pods that would lose more seconds of work are not moved."""
    found: dict[int, list[MovablePod]] = {}
    for task in running:
        node = session.node_of(task)
        kind = _kind(session, task)
        if node is None or kind is None or task.pod.metadata.controller is None:
            continue
        job = session.jobs.get(task.job)
        queue = session.queues.get(job.queue) if job is not None else None
        if queue is None or session.limits.overused(queue):
            continue  # its queue might not let it start again
        lost = _lost(session, task, kind)
        if lost > longest:
            continue
        share = share_of(session, task)
        found.setdefault(node, []).append(MovablePod(task, share, lost * share))
    for pods in found.values():
        pods.sort(key=lambda pod: (pod.cost, pod.share, pod.task.key))
    return found


def movable_for(movable: dict[int, list[MovablePod]], priority: int) -> dict[int, list[MovablePod]]:
    """Those that may be moved for a gang: pods of a higher priority stay."""
    return {node: [pod for pod in pods if pod.task.priority <= priority] for node, pods in movable.items()}


def share_of(session: Session, task: Task) -> float:
    """What a task requests, as a share of the cluster by its largest resource."""
    return largest_share(session, task.spec_class.vector(session.table))


def within_budgets(session: Session, moved: list[Task]) -> bool:
    """Whether PodDisruptionBudgets and the protections of plugins permit all of the evictions together."""
    objects: dict[str, PodDisruptionBudget] = session.cluster.others.get("PodDisruptionBudget", {})
    labelled = [task for task in moved if task.pod.metadata.labels]
    if len(Budgets(objects.values()).allow(labelled)) < len(labelled):
        return False
    return len(session.victims.unprotected(list(moved))) == len(moved)


def _kind(session: Session, task: Task) -> str | None:
    """The value of the annotation; None: the pod may not be moved."""
    value = task.annotations.get(MOVABLE)
    job = session.cluster.jobs.get(task.job)
    if value is None and job is not None and job.pod_group is not None:
        value = (job.pod_group.metadata.annotations or {}).get(MOVABLE)
    return value if value in (PLAIN, CHECKPOINT) else None


def _lost(session: Session, task: Task, kind: str) -> float:
    """The seconds of work that are lost."""
    started = task.pod.status.start_time
    ran = max(0.0, session.now - parse_time(started)) if started else 0.0
    if kind == CHECKPOINT:
        grace = task.pod.spec.termination_grace_period_seconds
        return min(ran, GRACE if grace is None else float(grace))
    return ran
