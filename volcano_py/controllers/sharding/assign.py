"""Assigns nodes to schedulers: each scheduler in turn chooses from the nodes that are left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from volcano_py.controllers.sharding.config import SchedulerSpec
from volcano_py.controllers.sharding.policies import POLICIES, NodeView, Policy


def assign(schedulers: Iterable[SchedulerSpec], nodes: Iterable[NodeView]) -> dict[str, list[str]]:
    """Scheduler → the names of its nodes, best first. Every node is evaluated once, for any number of nodes."""
    left = list(nodes)
    found: dict[str, list[str]] = {}
    for spec in schedulers:
        chosen = choose(spec, left)
        found[spec.name] = [node.name for node in chosen]
        taken = set(found[spec.name])
        left = [node for node in left if node.name not in taken]
    return found


def choose(spec: SchedulerSpec, nodes: Sequence[NodeView]) -> Sequence[NodeView]:
    """The nodes of one scheduler: filtered, ranked, limited."""
    policies = [(POLICIES[ref.name](ref.arguments or {}), ref.weight or 1.0) for ref in spec.policies or ()]
    chosen: Sequence[NodeView] = [node for node in nodes if _accepted(policies, node)]
    scores = [(policy.score, weight) for policy, weight in policies if policy.score is not None]
    if scores:
        total = {node.name: sum(weight * score(node) for score, weight in scores) for node in chosen}
        chosen = sorted(chosen, key=lambda node: -total[node.name])
    for policy, _ in policies:
        if policy.select is not None and chosen:
            chosen = policy.select(chosen)
    return chosen


def _accepted(policies: Iterable[tuple[Policy, float]], node: NodeView) -> bool:
    return all(policy.accepts(node) for policy, _ in policies if policy.accepts is not None)
