"""Placements: the sets of nodes on which all pods of a group may run, and the best of them. Kubernetes:
TopologyPlacementGenerator, NodeResourcesFit and PodGroupPodsCount (PlacementScore)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.groups.tree import GroupId, Tree
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

Nodes = frozenset[str]
"""The nodes of a placement, by name."""


class NoDomain(Exception):
    """The running pods of a group do not determine one domain; the message is the reason."""


def placements(cluster: ProfileCluster, tree: Tree, at: GroupId, key: str) -> list[Nodes]:
    """One per value of the label among the nodes that count now, or a single one with all of them. Running pods of the
    group determine the domain. Raises NoDomain."""
    nodes = cluster.nodes
    if not key:
        return [Nodes(nodes)]
    domains: dict[str, list[str]] = {}
    for info in nodes.values():
        value = info.labels.get(key)
        if value is not None:
            domains.setdefault(value, []).append(info.name)
    running = list(tree.on_nodes(at))
    if running:
        value = _domain(cluster, running, key)
        domains = {value: domains[value]} if value in domains else {}
    return [Nodes(names) for names in domains.values()]


def _domain(cluster: ProfileCluster, running: Iterable[tuple[PodInfo, str]], key: str) -> str:
    found: dict[str, None] = {}
    prefix = "cannot determine domain for already scheduled pods"
    for pod, node in running:
        info = cluster.nodes_everywhere.get(node)
        value = info.labels.get(key) if info is not None else None
        if value is None:
            raise NoDomain(f"{prefix}: node {node} of pod {pod.key} has no label {key}")
        found[value] = None
    if len(found) > 1:
        raise NoDomain(f"{prefix}: they are in more than one domain of {key}: {', '.join(sorted(found))}")
    return next(iter(found))


def fullness(nodes: Sequence[NodeInfo], strategy: Sequence[tuple[str, int]], more: Sequence[PodInfo] = ()) -> int:
    """How much of all nodes of a placement is requested, 0 to 100: the weighted mean of the shares of the strategy's
    resources. `more`: pods that may be placed there as well; the result is then at least that with any of them."""
    total = weights = 0
    for resource, weight in strategy:
        allocatable = sum(n.allocatable.get(resource, 0) for n in nodes)
        if not allocatable:
            continue
        requested = sum(_requested(n, resource) for n in nodes)
        if more:
            share = min((requested + sum(_request(p, resource) for p in more)) * 100 // allocatable, 100)
        else:
            share = requested * 100 // allocatable if requested <= allocatable else 0
        total += share * weight
        weights += weight
    return total // weights if weights else 0


def _request(pod: PodInfo, resource: str) -> int:
    if resource == "cpu":
        return pod.non_zero[0]
    return pod.non_zero[1] if resource == "memory" else pod.requests.get(resource, 0)


def _requested(node: NodeInfo, resource: str) -> int:
    if resource == "cpu":
        return node.non_zero_cpu
    return node.non_zero_memory if resource == "memory" else node.requested.get(resource, 0)
