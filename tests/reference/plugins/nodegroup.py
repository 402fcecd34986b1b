"""nodegroup: queues have groups of nodes."""

from __future__ import annotations

import json
from typing import Any

from tests.reference.cluster import Queue
from tests.reference.conf import get_bool
from tests.reference.node import Node
from tests.reference.resource import EPS, Resource, parse
from tests.reference.session import Handler, Session
from tests.reference.task import ALLOCATED_STATUS, Task
from tests.reference.votes import PredicateError

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Groups:
    """A queue's groups of nodes."""

    def __init__(self, affinity: dict[str, Any] | None, annotation: str | None) -> None:
        towards = (affinity or {}).get("nodeGroupAffinity") or {}
        away = (affinity or {}).get("nodeGroupAntiAffinity") or {}
        self.required: list[str] = towards.get(REQUIRED) or []
        self.preferred: list[str] = towards.get(PREFERRED) or []
        self.anti_required: list[str] = away.get(REQUIRED) or []
        self.anti_preferred: list[str] = away.get(PREFERRED) or []
        self.has_affinity = bool(self.required or self.preferred or self.anti_required or self.anti_preferred)
        self.readable = True
        self.limits: dict[str, dict[str, Any]] = {}
        try:
            self.limits = json.loads(annotation or "{}")
        except ValueError:
            self.readable = False
        self.allocated: dict[str, Resource] = {}

    def takes(self, group: str) -> bool:
        ok = group in self.required or group in self.preferred
        if group in self.anti_required:
            ok = False
        if group in self.anti_preferred:
            ok = True
        return ok


def nodegroup(session: Session, arguments: dict[str, Any]) -> None:
    strict = get_bool(arguments, "strict", True)
    in_order = get_bool(arguments, "enablePreferredOrder", False)
    hierarchy = session.conf.first_flag("nodegroup", "enableHierarchy")

    def affinity_of(queue: Queue) -> dict[str, Any] | None:
        """The queue's own affinity, or with a tree that of the nearest ancestor that has one."""
        seen = set()
        at: Queue | None = queue
        while at is not None and at.name not in seen:
            if at.affinity is not None:
                return at.affinity
            if not hierarchy or at.name == "root":
                return None
            seen.add(at.name)
            at = session.queues.get(at.parent or "root")
        return None

    groups = {q.name: Groups(affinity_of(q), q.annotations.get(LIMITS)) for q in session.queues.values()}

    def move(task: Task, sign: int) -> None:
        group = session.nodes[task.node].labels.get(LABEL) if task.node in session.nodes else None
        if group is not None:
            allocated = groups[session.jobs[task.job].queue].allocated.setdefault(group, Resource())
            allocated.add(task.resreq.clone().multi(sign))

    for job in session.jobs.values():
        for task in job.with_status(*ALLOCATED_STATUS):
            move(task, 1)

    def predicate(task: Task, node: Node) -> None:
        of = groups[session.jobs[task.job].queue]
        if not of.readable:
            raise PredicateError("node group resource limit annotation invalid", unresolvable=True)
        if LABEL not in node.labels:
            if not strict and not of.has_affinity:
                return
            raise PredicateError("node group label not found", unresolvable=True)
        group = node.labels[LABEL]
        if not of.has_affinity:
            raise PredicateError("node group affinity not specified", unresolvable=True)
        if not of.takes(group):
            raise PredicateError("node does not satisfy the node group affinity", unresolvable=True)
        limit = of.limits.get(group, {})
        amounts = parse(limit)
        used = of.allocated.get(group, Resource()).clone().add(task.resreq)
        for name in limit:
            if used.get(name) - amounts.get(name) >= EPS:
                raise PredicateError("node group resource limit exceeded", unresolvable=True)

    def node_order(task: Task, node: Node) -> float:
        of = groups[session.jobs[task.job].queue]
        group = node.labels.get(LABEL)
        if group is None:
            return 0.0
        score = 0.0
        if group in of.required:
            score += 100
        if group in of.preferred:
            count = len(of.preferred)
            score += 50 * (count - of.preferred.index(group)) / count if in_order else 50
        return -1.0 if group in of.anti_preferred else score

    session.votes.register("Predicate", "nodegroup", predicate)
    session.votes.register("NodeOrder", "nodegroup", node_order)
    session.handlers.append(Handler(lambda t: move(t, 1), lambda t: move(t, -1)))
