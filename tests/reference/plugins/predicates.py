"""kube-scheduler's filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.reference.conf import get_bool
from tests.reference.kube import node_affinity, ports, taints
from tests.reference.kube.pod_affinity import AffinityState
from tests.reference.kube.spread import SpreadState
from tests.reference.node import Node
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError


@dataclass
class Prepared:
    """What the filters counted before the nodes are looked at."""

    affinity: AffinityState
    spread: SpreadState


def predicates(session: Session, arguments: dict[str, Any]) -> None:
    def on(name: str) -> bool:
        return get_bool(arguments, f"predicate.{name}Enable", True)

    node_map = session.node_map
    prepared: dict[str, Prepared] = {}

    def refuse(rule: str) -> None:
        session.votes.said.add(f"predicates.{rule}")
        raise PredicateError(rule)

    def pre_predicate(task: Task) -> None:
        prepared[task.uid] = Prepared(AffinityState(task.pod, node_map), SpreadState(task.pod, node_map))
        if on("NodeAffinity") and node_affinity.names_contradict(task.pod):
            refuse("NodeAffinity")

    def predicate(task: Task, node: Node) -> None:
        pod = task.pod
        there = node_map.pods[node.name]
        counted = prepared[task.uid]
        if node.allocatable.max_tasks <= len(there):
            refuse("PodNumber")
        if not taints.unschedulable_is_tolerated(pod, node):
            refuse("NodeUnschedulable")
        if on("NodeAffinity") and not node_affinity.required_matches(pod, node):
            refuse("NodeAffinity")
        if on("TaintToleration") and not taints.taints_are_tolerated(pod, node):
            refuse("TaintToleration")
        if on("NodePorts") and not ports.ports_are_free(pod, there):
            refuse("NodePorts")
        if on("PodAffinity") and not counted.affinity.allows(node):
            refuse("PodAffinity")
        if on("PodTopologySpread") and not counted.spread.allows(node):
            refuse("PodTopologySpread")

    def allocate(task: Task) -> None:
        node_map.add(task.node, task.pod)

    def deallocate(task: Task) -> None:
        node_map.remove(task.node, task.pod)

    session.votes.register("PrePredicate", "predicates", pre_predicate)
    session.votes.register("Predicate", "predicates", predicate)
    session.handlers.append(Handler(allocate, deallocate))
