"""Affinity and anti-affinity between pods. kube-scheduler: InterPodAffinity."""

from __future__ import annotations

from collections import Counter

from tests.reference.kube.node_map import NodeMap, has_affinity, preferred, required_affinity, required_anti_affinity
from tests.reference.kube.selectors import Pod, term_matches
from tests.reference.node import Node

Pair = tuple[str, str]
"""(topology key, value)"""


class AffinityState:
    """The counts of PreFilter, over all nodes."""

    def __init__(self, pod: Pod, node_map: NodeMap) -> None:
        self.pod = pod
        self.namespaces = node_map.namespaces
        self.affinity = required_affinity(pod)
        self.anti_affinity = required_anti_affinity(pod)
        self.kept_off: Counter[Pair] = Counter()
        """Existing pods whose anti-affinity rejects this pod."""
        self.wanted: Counter[Pair] = Counter()
        """Existing pods that match all of this pod's affinity terms."""
        self.unwanted: Counter[Pair] = Counter()
        """Existing pods that this pod's anti-affinity rejects."""
        for name in node_map.have_required_anti_affinity:
            for other in node_map.pods[name]:
                for term in required_anti_affinity(other):
                    if term_matches(term, other, pod, self.namespaces, incoming=False):
                        self._count(self.kept_off, term["topologyKey"], node_map.nodes[name])
        for name, pods in node_map.pods.items():
            for other in pods:
                if self.affinity and all(term_matches(t, pod, other, self.namespaces) for t in self.affinity):
                    for term in self.affinity:
                        self._count(self.wanted, term["topologyKey"], node_map.nodes[name])
                for term in self.anti_affinity:
                    if term_matches(term, pod, other, self.namespaces):
                        self._count(self.unwanted, term["topologyKey"], node_map.nodes[name])

    @staticmethod
    def _count(counter: Counter[Pair], key: str, node: Node) -> None:
        if key in node.labels:
            counter[key, node.labels[key]] += 1

    def allows(self, node: Node) -> bool:
        return self.affinity_holds(node) and self._anti_affinity_holds(node) and not self._is_repelled(node)

    def rejection(self, node: Node) -> str:
        """The message for the anti-affinity that rejects."""
        if not self._anti_affinity_holds(node):
            return "node(s) didn't match pod anti-affinity rules"
        return "node(s) didn't satisfy existing pods anti-affinity rules"

    def affinity_holds(self, node: Node) -> bool:
        found_all = True
        for term in self.affinity:
            key = term["topologyKey"]
            if key not in node.labels:
                return False
            if self.wanted[key, node.labels[key]] <= 0:
                found_all = False
        if found_all:
            return True
        # The first of several pods with affinity to each other must be placed somewhere.
        no_match = sum(self.wanted.values()) == 0
        return no_match and all(term_matches(t, self.pod, self.pod, self.namespaces) for t in self.affinity)

    def _anti_affinity_holds(self, node: Node) -> bool:
        for term in self.anti_affinity:
            key = term["topologyKey"]
            if key in node.labels and self.unwanted[key, node.labels[key]] > 0:
                return False
        return True

    def _is_repelled(self, node: Node) -> bool:
        return any(self.kept_off[pair] > 0 for pair in node.labels.items())


def scores(pod: Pod, candidates: list[Node], node_map: NodeMap) -> list[int] | None:
    """Preferred terms in both directions, normalised; None: there are no preferred terms."""
    mine_matter = bool(preferred(pod, "podAffinity") or preferred(pod, "podAntiAffinity"))
    weights: dict[str, Counter[str]] = {}
    for name in node_map.nodes if mine_matter else node_map.have_affinity:
        node = node_map.nodes[name]
        for other in node_map.pods[name]:
            if not mine_matter and not has_affinity(other):
                continue
            for owner, meant in ((pod, other), (other, pod)):
                for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                    for weighted in preferred(owner, kind):
                        term = weighted["podAffinityTerm"]
                        key = term["topologyKey"]
                        mine = owner is pod
                        if key in node.labels and term_matches(term, owner, meant, node_map.namespaces, mine):
                            value = node.labels[key]
                            weights.setdefault(key, Counter())[value] += sign * weighted["weight"]
    if not weights:
        return None
    raw = []
    for node in candidates:
        raw.append(sum(values[node.labels[key]] for key, values in weights.items() if key in node.labels))
    least, span = min(raw), max(raw) - min(raw)
    return [int(100.0 * ((r - least) / span)) if span > 0 else 0 for r in raw]
