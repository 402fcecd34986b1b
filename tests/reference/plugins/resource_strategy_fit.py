"""resource-strategy-fit: packs nodes by some resources, spreads by others."""

from __future__ import annotations

import json
from typing import Any

from tests.reference.conf import get_int
from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError

TYPE = "volcano.sh/resource-strategy-scoring-type"
WEIGHT = "volcano.sh/resource-strategy-weight"
LEAST, MOST = "LeastAllocated", "MostAllocated"
Strategy = tuple[str, int]


def resource_strategy_fit(session: Session, arguments: dict[str, Any]) -> None:
    weight = get_int(arguments, "resourceStrategyFitWeight", 10)
    weight = 10 if weight < 0 else weight
    configured: dict[str, Strategy] = {}
    for name, settings in (arguments.get("resources") or {}).items():
        kind = MOST if settings.get("type") == MOST else LEAST
        w = settings.get("weight", 1)
        configured[name] = (kind, w if w > 0 else 1)
    if not configured:
        configured = {"cpu": (LEAST, 1), "memory": (LEAST, 1)}
    sra = arguments.get("sra") or {}
    proportional = arguments.get("proportional") or {}

    def strategy_of(name: str) -> Strategy | None:
        if name in configured:
            return configured[name]
        longest = ""
        for pattern in configured:
            prefix = pattern[:-1]
            if pattern.endswith("*") and prefix and "*" not in prefix and name.startswith(prefix):
                longest = max(longest, pattern, key=len)
        return configured[longest] if longest else None

    def of_pod(task: Task) -> dict[str, Strategy] | None:
        """The pod's own strategy; None if it sets none."""
        annotations = task.pod["metadata"].get("annotations") or {}
        if TYPE not in annotations:
            return None
        try:
            weights = json.loads(annotations.get(WEIGHT, ""))
        except ValueError:
            return {}
        return {name: (annotations[TYPE], w) for name, w in weights.items()}

    def fit(task: Task, node: Node) -> float:
        own = of_pod(task)
        score, sum_of_weights = 0.0, 0
        for name in task.resreq.names():
            strategy = strategy_of(name) if own is None else own.get(name)
            if strategy is None:
                continue
            kind, w = strategy
            capacity, wanted = node.allocatable.get(name), task.resreq.get(name) + node.used.get(name)
            if capacity != 0 and w != 0:
                if wanted > capacity:
                    return 0.0
                score += (wanted if kind == MOST else capacity - wanted) * w / capacity
            sum_of_weights += w
        return score / sum_of_weights * (100 * weight) if sum_of_weights > 0 else 0.0

    def keep_scarce_resources(task: Task, node: Node) -> float:
        sra_weight = sra.get("weight", 0)
        if not sra.get("enable") or sra_weight <= 0:
            return 0.0
        if any(node.allocatable.get(name) == 0 for name in task.resreq.names()):
            return 0.0
        there, total = 0, 0
        for name in listed(sra):
            w = (sra.get("resourceWeight") or {}).get(name, 1)
            w = w if w >= 0 else 1
            total += w
            if node.allocatable.get(name) > 0:
                there += w
        return (1 - there / total) * (100 * sra_weight) if total else 0.0

    def node_order(task: Task, node: Node) -> float:
        return fit(task, node) + keep_scarce_resources(task, node)

    def predicate(task: Task, node: Node) -> None:
        names = listed(proportional)
        if any(task.resreq.get(name) > 0 for name in names):
            return
        rates = proportional.get("resourceProportion") or {}
        for name in names:
            if name not in (node.idle.scalars or {}):
                continue
            idle = node.idle.get(name)
            cpu, memory = (_rate(rates, f"{name}.{kind}") for kind in ("cpu", "memory"))
            enough_cpu = node.idle.cpu - task.resreq.cpu >= idle * cpu
            if not enough_cpu or node.idle.memory - task.resreq.memory < idle * memory * 1000 * 1000:
                raise PredicateError(f"proportional of resource {name} check failed", unresolvable=True)

    session.votes.register("NodeOrder", "resource-strategy-fit", node_order)
    if proportional.get("enable"):
        session.votes.register("Predicate", "resource-strategy-fit", predicate)


def _rate(rates: dict[str, Any], key: str) -> float:
    rate = float(rates.get(key, 1))
    return rate if rate >= 0 else 1.0


def listed(settings: dict[str, Any]) -> list[str]:
    return [name.strip() for name in settings.get("resources", "").split(",") if name.strip()]
