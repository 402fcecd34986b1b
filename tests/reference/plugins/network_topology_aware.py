"""network-topology-aware: the HyperNodes in which jobs are tried, and the scores of HyperNodes and nodes."""

from __future__ import annotations

from typing import Any

from tests.reference.conf import get_bool, get_float, get_int
from tests.reference.hyper_nodes import HyperNodes
from tests.reference.job import Job
from tests.reference.node import Node
from tests.reference.resource import Resource
from tests.reference.session import Handler, Session
from tests.reference.sub_job import SubJob
from tests.reference.task import Task

NAME = "network-topology-aware"


class Sums:
    """The sums over the nodes of a HyperNode: allocatable, used now, idle when the session opened."""

    def __init__(self, nodes: list[Node]) -> None:
        self.allocatable, self.used = Resource(), Resource()
        self.idle, self.future_idle = Resource(), Resource()
        for node in nodes:
            self.allocatable.add(node.allocatable)
            self.used.add(node.used)
            self.idle.add(node.idle)
            self.future_idle.add(node.future_idle())


def network_topology_aware(session: Session, arguments: dict[str, Any]) -> None:
    NetworkTopologyAware(session, arguments)


class NetworkTopologyAware:
    def __init__(self, session: Session, arguments: dict[str, Any]) -> None:
        def weight(key: str) -> int:
            w = get_int(arguments, key, 1)
            return w if w >= 0 else 1

        self.session = session
        self.tree: HyperNodes = session.hyper_nodes
        self.weight = weight("weight")
        self.weights: dict[str, int] = {}
        for name in str(arguments.get("hypernode.binpack.resources") or "").split(","):
            if name.strip():
                self.weights[name.strip()] = weight(f"hypernode.binpack.resources.{name.strip()}")
        self.weights["cpu"] = weight("hypernode.binpack.cpu")
        self.weights["memory"] = weight("hypernode.binpack.memory")
        self.normal_pods = get_bool(arguments, "hypernode.binpack.normal-pod.enable", True)
        fading = get_float(arguments, "hypernode.binpack.normal-pod.fading", 0.8)
        self.fading = fading if fading >= 0 else 0.8
        most = get_int(arguments, "hypernode.gradient.evict.max-hypernodes", 8)
        self.most = most if most > 0 else 8
        self.sums = {name: Sums(session.nodes_of(name)) for name in self.tree.of}
        votes = session.votes
        votes.register("HyperNodeGradientForJob", NAME, self.of_job)
        votes.register("HyperNodeGradientForSubJob", NAME, self.of_sub_job)
        votes.register("HyperNodeOrder", NAME, self.hyper_node_order)
        votes.register("BatchNodeOrder", NAME, self.batch_node_order)
        session.handlers.append(Handler(lambda task: self.use(task, 1), lambda task: self.use(task, -1)))

    def use(self, task: Task, sign: int) -> None:
        for name, sums in self.sums.items():
            if task.node in self.tree.of[name].nodes:
                sums.used.add(task.resreq.clone().multi(sign))

    # --- gradients

    def of_job(self, job: Job, hyper_node: str, purpose: str) -> list[list[str]]:
        if job.topology is None or not job.topology.hard:
            return [[hyper_node]]
        assert job.topology.tier is not None
        return self.gradients(hyper_node, job.allocated_hyper_node, job.topology.tier, job.minimum(), purpose)

    def of_sub_job(self, sub: SubJob, hyper_node: str, purpose: str) -> list[list[str]]:
        if sub.topology is None or not sub.topology.hard:
            return [[hyper_node]]
        assert sub.topology.tier is not None
        needed = Resource()
        for task in sub.with_status("Pending"):
            needed.add(task.resreq)
        return self.gradients(hyper_node, sub.allocated_hyper_node, sub.topology.tier, needed, purpose)

    def gradients(
        self, hyper_node: str, allocated: str, highest: int, least: Resource, purpose: str
    ) -> list[list[str]]:
        root = hyper_node
        if allocated:
            top = ""
            for name in self.tree.ancestors(allocated):
                if self.tree.of[name].tier > highest:
                    break
                top = name
            if not top:
                return []
            common = self.tree.lowest_common(hyper_node, top)
            if common not in (top, hyper_node):
                return []
            root = hyper_node if common == top else top
        by_tier: dict[int, list[str]] = {}
        for name in self.tree.below(root):
            tier = self.tree.of[name].tier
            if tier <= highest and (allocated or self.has_capacity(name, least, purpose)):
                by_tier.setdefault(tier, []).append(name)
        groups = [sorted(by_tier[tier]) for tier in sorted(by_tier)]
        return self.capped(groups) if purpose == "evict" else groups

    def has_capacity(self, name: str, least: Resource, purpose: str) -> bool:
        sums = self.sums[name]
        if purpose == "evict":
            return least.less_equal(sums.allocatable)
        return least.less_equal(sums.idle) or least.less_equal(sums.future_idle)

    def capped(self, groups: list[list[str]]) -> list[list[str]]:
        left, found = self.most, []
        for group in reversed(groups):
            if left > 0:
                found.append(group[-left:])
                left -= len(found[-1])
        return found

    # --- scores

    def binpack(self, name: str, wanted: Resource) -> float:
        sums = self.sums[name]
        score, weights = 0.0, 0
        for resource in wanted.names():
            if resource not in self.weights:
                continue
            full, have = sums.used.get(resource) + wanted.get(resource), sums.allocatable.get(resource)
            if full > have:
                return 0.0
            score += self.weights[resource] * (full / have)
            weights += self.weights[resource]
        return score / weights if weights > 0 else 0.0

    def hyper_node_order(self, sub: SubJob, names: list[str]) -> dict[str, float]:
        wanted = Resource()
        for task in sub.tasks.values():
            wanted.add(task.resreq)
        scores = {name: self.binpack(name, wanted) for name in names}
        best = [name for name in names if scores[name] == max(scores.values())]
        if len(best) > 1:
            for name in best:
                scores[name] += self.part_in(sub, name)
        return {name: score * (100 * self.weight) for name, score in scores.items()}

    def part_in(self, sub: SubJob, name: str) -> float:
        if not name or not sub.tasks:
            return 0.0
        return sum(t.node in self.tree.of[name].nodes for t in sub.tasks.values()) / len(sub.tasks)

    def batch_node_order(self, task: Task, nodes: list[Node]) -> list[float]:
        sub = self.session.jobs[task.job].sub_job_of(task)
        if sub.topology is not None:
            scores = self.near(task, sub, nodes)
        elif self.normal_pods:
            scores = [self.normal(task, node) for node in nodes]
        else:
            scores = [0.0] * len(nodes)
        return [score * (100 * self.weight) for score in scores]

    def near(self, task: Task, sub: SubJob, nodes: list[Node]) -> list[float]:
        if not task.job_hyper_node:
            return [0.0] * len(nodes)
        leaves = [self.tree.leaf(node.name) for node in nodes]
        scores = [self.nearness(leaf, task.job_hyper_node) for leaf in leaves]
        greatest = max(scores)
        if scores.count(greatest) > 1:
            for i, leaf in enumerate(leaves):
                if scores[i] == greatest:
                    scores[i] += self.part_in(sub, leaf)
        return scores

    def nearness(self, leaf: str, allocated: str) -> float:
        if not leaf or not allocated:
            return 0.0
        if leaf == allocated:
            return 1.0
        common = self.tree.lowest_common(leaf, allocated)
        if not common:
            return 0.0
        least, most = self.tree.tiers[0], self.tree.tiers[-1]
        return (most - self.tree.of[common].tier) / (most - least) if most > least else 1.0

    def normal(self, task: Task, node: Node) -> float:
        score, weights = 0.0, 0.0
        for tier in range(self.tree.tiers[0], self.tree.tiers[-1] + 1):  # including tiers without HyperNodes
            weight = power(self.fading, tier - 1)
            holding = [h.name for h in self.tree.of_tier(tier) if node.name in h.nodes]
            score += weight * (self.binpack(holding[0], task.resreq) if holding else 1.0)
            weights += weight
        return score / weights if weights > 0 else 0.0


def power(base: float, exponent: int) -> float:
    """By squaring, from the last binary digit of the exponent on, as in Go."""
    if exponent < 0:
        return 1.0 / power(base, -exponent)
    result = 1.0
    for digit in reversed(f"{exponent:b}"):
        if digit == "1":
            result *= base
        base *= base
    return result
