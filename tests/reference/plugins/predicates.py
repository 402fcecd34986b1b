"""kube-scheduler's filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.reference.conf import get_bool
from tests.reference.kube import node_affinity, ports, taints
from tests.reference.kube.pod_affinity import AffinityState
from tests.reference.kube.selectors import Pod
from tests.reference.kube.spread import SpreadState
from tests.reference.kube.volumes import ClaimProblem, in_zones
from tests.reference.node import Node
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError

_REASONS = {
    "PodNumber": "node(s) pod number exceeded",
    "NodeUnschedulable": "node(s) were unschedulable",
    "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
    "TaintToleration": "node(s) had untolerated taint(s)",
    "NodePorts": "node(s) didn't have free ports for the requested pod ports",
    "PodTopologySpread": "node(s) didn't match pod topology spread constraints",
    "NodeVolumeLimits": "node(s) exceed max volume count",
    "VolumeZone": "node(s) had no available volume zone",
}


@dataclass
class Prepared:
    """The counts of the filters before nodes are filtered."""

    affinity: AffinityState
    spread: SpreadState


def predicates(session: Session, arguments: dict[str, Any]) -> None:
    def on(name: str) -> bool:
        return get_bool(arguments, f"predicate.{name}Enable", True)

    node_map, volumes = session.node_map, session.volumes
    prepared: dict[str, Prepared] = {}

    def record(rule: str) -> None:
        session.votes.deciding.add(f"predicates.{rule}")

    def pre_predicate(task: Task) -> None:
        prepared[task.uid] = Prepared(AffinityState(task.pod, node_map), SpreadState(task.pod, node_map))
        if on("NodeAffinity") and node_affinity.names_contradict(task.pod):
            record("NodeAffinity")
            raise PredicateError("plugin NodeAffinity pre-predicates failed pod affinity terms conflict")
        checks = (("VolumeZone", volumes.objects.zones), ("VolumeBinding", volumes.objects.split))
        for name, check in checks:
            try:
                if on(name):
                    check(task.pod)
            except ClaimProblem as e:
                record(f"{name}.all")
                raise PredicateError(f"plugin {name} pre-predicates failed {e}") from None

    def predicate(task: Task, node: Node) -> None:
        if task.uid in prepared:
            evaluate(task, node)
            return
        # An earlier nomination is checked before anything is counted, which Volcano treats as an error.
        pre_predicate(task)
        evaluate(task, node)
        del prepared[task.uid]
        session.rarities.add("not-prepared")
        raise PredicateError("nothing has been counted")

    def evaluate(task: Task, node: Node) -> None:
        """Rejections that evictions can resolve are collected, any other one ends the evaluation."""
        pod = task.pod
        there = node_map.pods[node.name]
        counted = prepared[task.uid]
        gathered: list[str] = []

        def reject(rule: str, reason: str = "") -> None:
            record(rule)
            raise PredicateError(*gathered, reason or _REASONS[rule], unresolvable=True)

        def gather(rule: str, reason: str = "") -> None:
            record(rule)
            gathered.append(reason or _REASONS[rule])

        if node.allocatable.max_tasks <= len(there):
            gather("PodNumber")
        if not taints.unschedulable_is_tolerated(pod, node):
            reject("NodeUnschedulable")
        if on("NodeAffinity") and not node_affinity.required_matches(pod, node):
            reject("NodeAffinity")
        if on("TaintToleration") and not taints.taints_are_tolerated(pod, node):
            reject("TaintToleration")
        if on("NodePorts") and not ports.ports_are_free(pod, node_map.ports[node.name]):
            gather("NodePorts")
        if on("PodAffinity") and not counted.affinity.affinity_holds(node):
            reject("PodAffinity", "node(s) didn't match pod affinity rules")
        if on("PodAffinity") and not counted.affinity.allows(node):
            gather("PodAffinity", counted.affinity.rejection(node))
        if on("NodeVolumeLimits") and not volumes.objects.within_limits(pod, node, there):
            gather("NodeVolumeLimits")
        zone_problem = zone_rejection(pod, node) if on("VolumeZone") else ""
        if zone_problem:
            reject("VolumeZone", zone_problem)
        if on("PodTopologySpread") and counted.spread.verdict(node) == "no domain":
            reject("PodTopologySpread", f"{_REASONS['PodTopologySpread']} (missing required label)")
        if on("PodTopologySpread") and counted.spread.verdict(node) == "too many":
            gather("PodTopologySpread")
        try:
            unreachable = volumes.find(pod, node)[0] if on("VolumeBinding") else []
        except ClaimProblem as e:
            unreachable = [str(e)]
        if unreachable:
            record("VolumeBinding")
            raise PredicateError(*gathered, ", ".join(unreachable), unresolvable=True)
        if gathered:
            raise PredicateError(*gathered)

    def zone_rejection(pod: Pod, node: Node) -> str:
        try:
            return "" if in_zones(volumes.objects.zones(pod), node) else _REASONS["VolumeZone"]
        except ClaimProblem as e:
            return str(e)

    def simulate(task: Task, node: Node) -> bool:
        return not on("PodAffinity") or AffinityState(task.pod, node_map).allows(node)

    def allocate(task: Task) -> None:
        if on("VolumeBinding") and task.status == "Allocated" and not session.simulating:
            volumes.reserve(task.pod, session.nodes[task.node])
        node_map.add(task.node, task.pod)

    def deallocate(task: Task) -> None:
        if not session.simulating:
            volumes.unreserve(task.pod)
        node_map.remove(task.node, task.pod)

    session.votes.register("PrePredicate", "predicates", pre_predicate)
    session.votes.register("SimulatePredicate", "predicates", simulate)
    session.votes.register("Predicate", "predicates", predicate)
    session.handlers.append(Handler(allocate, deallocate))
