"""Topology-aware preemption: tries the eviction for a task on every node, and selects the node with the least loss.

Volcano: preempt with enableTopologyAwarePreemption. All nodes are tried, as with enough candidates and no time limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.victims import are_enough, victims_queue


def best_candidate(
    session: Session, task: Task, nodes: list[Node], may_be_evicted: Callable[[Task], bool]
) -> tuple[Node, list[Task]] | None:
    found = []
    for node in nodes:
        victims = Trial(session, task, node).victims(may_be_evicted)
        if victims:
            found.append((node, victims))
    return min(found, key=lambda each: loss(session, *each)) if found else None


class Trial:
    """A copy of one node, from which pods can be removed and restored."""

    def __init__(self, session: Session, task: Task, node: Node) -> None:
        self.session = session
        self.task = task
        self.node = node
        self.copy = Node(node.manifest)
        for t in node.tasks.values():
            self.copy.add_task(replace(t))
        self.removed: list[Task] = []

    def victims(self, may_be_evicted: Callable[[Task], bool]) -> list[Task]:
        """The necessary victims; empty if there is no solution."""
        candidates = [v for v in self.session.on_node(self.node) if may_be_evicted(v)]
        allowed = self.session.votes.preemptable(self.task, candidates)
        if not are_enough(self.task, self.node, allowed):
            return []
        order = victims_queue(self.session, allowed, self.task)
        potential: list[Task] = []
        while order:
            potential.append(order.pop())
            self.take(potential[-1])
            if self.fits():
                break
        if not potential or not self.accepts():
            return []
        victims = []
        for victim in reversed(potential):
            self.give_back(victim)
            if not self.fits():
                self.take(victim)
                victims.append(victim)
        return victims

    def take(self, victim: Task) -> None:
        self.copy.remove_task(victim)
        self.removed.append(victim)

    def give_back(self, victim: Task) -> None:
        self.copy.add_task(replace(victim))
        self.removed.remove(victim)

    def fits(self) -> bool:
        if not self.task.resreq.less_equal(self.copy.future_idle()) or not self.accepts():
            return False
        session = self.session
        queue = session.queues[session.jobs[self.task.job].queue]
        session.simulating = True
        for victim in self.removed:
            for handler in session.handlers:
                handler.deallocate(victim)
        found = session.votes.simulated_allocatable(queue, self.task)
        for victim in self.removed:
            for handler in session.handlers:
                handler.allocate(victim)
        session.simulating = False
        return found

    def accepts(self) -> bool:
        """Evaluates only affinity between pods and shared devices again."""
        pods = self.session.node_map.pods
        before = pods[self.node.name]
        removed = {v.uid for v in self.removed}
        pods[self.node.name] = [p for p in before if p["metadata"]["uid"] not in removed]
        self.session.removed = self.removed
        found = self.session.votes.simulated_predicate(self.task, self.node)
        self.session.removed = []
        pods[self.node.name] = before
        return found


def loss(session: Session, node: Node, victims: list[Task]) -> tuple[float, ...]:
    """A sort key, the best node first. The first victim is the most important one."""
    highest = max(v.pod_priority for v in victims)
    started = min(start_of(session, v) for v in victims if v.pod_priority == highest)
    return (
        victims[0].pod_priority,
        sum(v.pod_priority + 2**31 for v in victims),
        len(victims),
        -started,
        session.rank(node.name),
    )


def start_of(session: Session, task: Task) -> float:
    text = (task.pod.get("status") or {}).get("startTime")
    return datetime.fromisoformat(text).timestamp() if text else session.now
