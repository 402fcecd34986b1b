"""Preferred affinity between pods. Kubernetes: InterPodAffinity, scoring.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo, Term
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status

_KEY = "InterPodAffinity/score"


class Arguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    hard_pod_affinity_weight: int = 1
    """The weight of a required affinity term of an existing pod for the score of its domain."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether only pods with preferred terms of their own are scored."""


class PodPreference(Score):
    def __init__(self, args: Arguments, cluster: Cluster) -> None:
        self._args = args
        self._cluster = cluster

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        if self._args.ignore_preferred_terms_of_existing_pods and not pod.preferred:
            return SKIP
        worth: Counter[tuple[str, str]] = Counter()
        labels = self._cluster.labels_of(pod.namespace)
        own = [t.resolved(self._cluster.namespaces) for t in pod.preferred]
        hard = self._args.hard_pod_affinity_weight
        for node in self._cluster.nodes.values() if own else self._cluster.nodes_with_affinity():
            for other in node.pods.values() if own else node.with_affinity.values():
                for term in own:
                    if term.selects(other, None):
                        _add(worth, term, term.weight, node)
                for term in other.affinity if hard else ():
                    if term.selects(pod, labels):
                        _add(worth, term, hard, node)
                for term in other.preferred:
                    if term.selects(pod, labels):
                        _add(worth, term, term.weight, node)
        if not worth:
            return SKIP
        state.write(_KEY, worth)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        worth: Counter[tuple[str, str]] = state.read(_KEY)
        return sum(worth[key, value] for key, value in node.labels.items())

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        low, high = min(scores.values()), max(scores.values())
        for node, value in scores.items():
            scores[node] = int(MAX_SCORE * ((value - low) / (high - low))) if high > low else 0


def _add(worth: Counter[tuple[str, str]], term: Term, weight: int, node: NodeInfo) -> None:
    value = node.labels.get(term.key)
    if value is not None:
        worth[term.key, value] += weight
