"""usage: rejects nodes with a high measured load, and prefers nodes with a low one.

New pods are in no measurement yet; an estimate of their load is added to the measured load.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.reference.cluster import Measurement
from tests.reference.conf import duration, get_float, get_int
from tests.reference.node import Node, number
from tests.reference.request import pod_limit
from tests.reference.resource import Resource, parse
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError
from volcano_py.api.quantity import milli_value, value

MAX_AGE = 300.0
"""Seconds after which a measurement counts as absent."""
INTERVAL = 30.0
MIB = 1024.0 * 1024.0


class Estimates:
    """The estimated load of new pods, by node. Volcano: ShadowLoadCache."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.memory: dict[str, float] = {}
        self.recorded: dict[str, tuple[str, float, float]] = {}
        """By uid of the pod: its node, and what was added."""

    def add(self, uid: str, node: str, cpu: float, memory: float) -> None:
        self.subtract(uid)
        self.recorded[uid] = (node, cpu, memory)
        self.cpu[node] = self.cpu.get(node, 0.0) + cpu
        self.memory[node] = self.memory.get(node, 0.0) + memory

    def subtract(self, uid: str) -> None:
        if uid in self.recorded:
            node, cpu, memory = self.recorded.pop(uid)
            self.cpu[node] = max(self.cpu[node] - cpu, 0.0)
            self.memory[node] = max(self.memory[node] - memory, 0.0)


def usage(session: Session, arguments: dict[str, Any]) -> None:
    weight = not_negative(arguments, "usage.weight", 5)
    cpu_weight = not_negative(arguments, "cpu.weight", 1)
    memory_weight = not_negative(arguments, "memory.weight", 1)
    thresholds = arguments.get("thresholds") or {}
    cpu_limit = threshold(thresholds, "cpu")
    memory_limit = threshold(thresholds, "mem")
    estimator = arguments.get("estimator") or {}
    request_ratio = within(estimator, "request_ratio", 0.7, 0.0, 1.0)
    burst_ratio = within(estimator, "burst_ratio", 0.0, 0.0, 1.0)
    risk_threshold = within(estimator, "risk_threshold", 0.6, 0.0, 1.0)
    risk_factor = within(estimator, "risk_factor", 1.2, 1.0, float("inf"))
    best_effort_cpu = amount(estimator.get("be_cpu"), 1.0, milli_value, 250.0)
    best_effort_memory = amount(estimator.get("be_mem"), MIB, value, 200 * MIB)
    interval = duration(session.conf.metrics.get("interval")) or INTERVAL
    estimates = Estimates()

    def measured(node: Node) -> Measurement | None:
        found = session.cluster.usage.get(node.name)
        return None if found is None or session.now - found.time > MAX_AGE else found

    def load(node: Node) -> tuple[float, float]:
        """The used parts of cpu and memory, from 0 to 1."""
        found = measured(node)
        capacity = capacity_of(node)
        return (
            used_part(found.cpu if found else 0.0, estimates.cpu.get(node.name, 0.0), capacity.cpu),
            used_part(found.memory if found else 0.0, estimates.memory.get(node.name, 0.0), capacity.memory),
        )

    def weighted(cpu: float, memory: float) -> float:
        weights = cpu_weight + memory_weight
        return 0.0 if weights == 0 else (cpu * cpu_weight + memory * memory_weight) / weights

    def add(task: Task, node: Node) -> None:
        risk = risk_factor if weighted(*load(node)) >= risk_threshold else 1.0
        if task.best_effort:
            cpu, memory = best_effort_cpu * risk, best_effort_memory * risk
        else:
            limit = pod_limit(task.pod)
            cpu = estimate(task.resreq.cpu, limit.cpu, risk)
            memory = estimate(task.resreq.memory, limit.memory, risk)
        estimates.add(task.uid, node.name, cpu, memory)

    def estimate(request: float, limit: float, risk: float) -> float:
        limit = max(limit, request)
        found = (request * request_ratio + (limit - request) * burst_ratio) * risk
        return min(max(found, 0.0), limit)

    def is_new(task: Task) -> bool:
        """Whether no measurement includes the task."""
        if task.status in ("Allocated", "Binding", "Bound"):
            return True
        started = (task.pod.get("status") or {}).get("startTime")
        if task.status != "Running":
            return False
        return not started or session.now - datetime.fromisoformat(started).timestamp() < interval

    for node in session.nodes.values():
        new = [task for task in node.tasks.values() if is_new(task)]
        before = weighted(*load(node))
        for task in new:
            add(task, node)
        if len(new) > 1 and measured(node) and before < risk_threshold <= weighted(*load(node)):
            # Volcano iterates over a map here, and the risk applies to the tasks after the threshold is reached.
            session.rarities.add("usage-order")

    def allocate(task: Task) -> None:
        if not session.simulating:
            add(task, session.nodes[task.node])

    def deallocate(task: Task) -> None:
        if not session.simulating:
            estimates.subtract(task.uid)

    def predicate(task: Task, node: Node) -> None:
        found = measured(node)
        if found is not None and found.cpu > cpu_limit:
            raise PredicateError("the CPU load of the node exceeds the upper limit.", unresolvable=True)
        if found is not None and found.memory > memory_limit:
            raise PredicateError("the memory load of the node exceeds the upper limit.", unresolvable=True)

    def node_order(task: Task, node: Node) -> float:
        if measured(node) is None:
            return 0.0
        cpu, memory = load(node)
        return weighted(1 - cpu, 1 - memory) * 100 * weight

    session.votes.register("Predicate", "usage", predicate)
    session.votes.register("NodeOrder", "usage", node_order)
    session.handlers.append(Handler(allocate, deallocate))


def used_part(percent: float, estimated: float, capacity: float) -> float:
    if capacity == 0:
        return 0.0
    return min(max((percent / 100 * capacity + estimated) / capacity, 0.0), 1.0)


def capacity_of(node: Node) -> Resource:
    """Volcano: NodeInfo.Capacity, with oversubscribed resources."""
    capacity = parse((node.manifest.get("status") or {}).get("capacity"))
    annotations = node.manifest["metadata"].get("annotations") or {}
    capacity.cpu += number(annotations.get("volcano.sh/oversubscription-cpu", ""))
    capacity.memory += number(annotations.get("volcano.sh/oversubscription-memory", ""))
    return capacity


def not_negative(arguments: dict[str, Any], key: str, default: int) -> int:
    found = get_int(arguments, key, default)
    return found if found >= 0 else default


def threshold(thresholds: dict[str, Any], key: str) -> int:
    found = get_int(thresholds, key, 80)
    return found if 0 <= found <= 100 else 80


def within(estimator: dict[str, Any], key: str, default: float, least: float, most: float) -> float:
    found = get_float(estimator, key, default)
    return found if least <= found <= most else default


def amount(given: Any, unit: float, parsed: Any, default: float) -> float:
    """A quantity, or an integer in `unit`; anything else, and negative amounts, count as absent."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        return default
    try:
        found = given * unit if isinstance(given, int) else float(parsed(given))
    except ValueError:
        return default
    return found if found >= 0 else default
