"""Preferred affinity between pods, for profiles. Kubernetes: InterPodAffinity, scoring.go."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status
from volcano_py.scheduler.rules.arrays import Indices, Ints
from volcano_py.scheduler.rules.pod_affinity import AffinityTerm, scores

_KEY = "InterPodAffinity/score"


class PodPreferenceArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    hard_pod_affinity_weight: int = 1
    """The weight of a required affinity term of an existing pod for the score of its domain."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether only pods with preferred terms of their own are scored."""


def pods_selected(terms: Sequence[AffinityTerm], nodes: Columns) -> Ints:
    """Per node, the pods that all of the terms select together."""

    def selected(node: NodeInfo) -> int:
        return sum(all(t.selects(other.namespace, other.labels) for t in terms) for other in node.pods.values())

    return nodes.count(("terms", *(t.means for t in terms)), selected)


class PodPreference(Score):
    def __init__(self, args: PodPreferenceArguments, cluster: ProfileCluster) -> None:
        self._args = args
        self._cluster = cluster

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        if self._args.ignore_preferred_terms_of_existing_pods and not pod.preferred:
            return SKIP
        columns = self._cluster.columns
        sums = np.zeros(len(columns), dtype=np.int64)
        for term in (t.resolved(self._cluster.namespaces) for t in pod.preferred):
            sums += term.weight * columns.domains(term.key).around(pods_selected((term,), columns))
        for key, weights in self._weights_of_others(pod, columns).items():
            sums += columns.domains(key).around(weights)
        if not sums.any():
            return SKIP
        state.write(_KEY, sums)
        return SUCCESS

    def _weights_of_others(self, pod: PodInfo, columns: Columns) -> dict[str, Ints]:
        """By topology key: the weights of the terms of the pods on each node that select the pod."""
        found: dict[str, Ints] = {}
        labels = self._cluster.labels_of(pod.namespace)
        hard = self._args.hard_pod_affinity_weight
        for node in self._cluster.nodes_with_affinity():
            i = columns.index[node.name]
            for other in node.with_affinity.values():
                weighted = [(t, t.weight) for t in other.preferred]
                weighted += [(t, hard) for t in other.affinity if hard]
                for term, weight in weighted:
                    if term.selects(pod.namespace, pod.labels, labels):
                        found.setdefault(term.key, np.zeros(len(columns), dtype=np.int64))[i] += weight
        return found

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return int(state.read(_KEY)[self._cluster.columns.index[node.name]])

    def normalize_columns(self, sums: Ints) -> Ints:
        return scores(sums)

    def score_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, fits: Indices) -> Ints:
        sums: Ints = state.read(_KEY)
        return scores(sums[fits])
