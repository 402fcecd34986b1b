"""Required affinity and anti-affinity between pods, for profiles. Kubernetes: InterPodAffinity, filtering.go.

The score is in `pod_preference`; both are points of one plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.pods.pod_affinity_hints import AffinityHints
from volcano_py.scheduler.profiles.plugins.pods.pod_preference import (
    PodPreference,
    PodPreferenceArguments,
    pods_selected,
)
from volcano_py.scheduler.rules.arrays import Bools, Ints
from volcano_py.scheduler.rules.pod_affinity import AffinityTerm, is_any, is_near

_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
_ANTI = unschedulable("node(s) didn't match pod anti-affinity rules")
_EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

Counts = Counter[tuple[str, str]]
"""(topology key, value) to a number of pods and terms."""


class _State:
    """Counts per domain: pods that the pod's own terms select, and anti-affinity terms of other pods that select the
    pod."""

    def __init__(self, pod: PodInfo, cluster: ProfileCluster) -> None:
        self.labels = cluster.labels_of(pod.namespace)
        self.required = [t.resolved(cluster.namespaces) for t in pod.affinity]
        self.forbidden = [t.resolved(cluster.namespaces) for t in pod.anti_affinity]
        self.near: Counts = Counter()
        self.far: Counts = Counter()
        self.existing: Counts = Counter()

    def clone(self) -> _State:
        other = object.__new__(_State)
        other.__dict__.update(self.__dict__)
        other.near, other.far, other.existing = Counter(self.near), Counter(self.far), Counter(self.existing)
        return other

    def count(self, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        """Count `other` on the node (sign 1), or uncount it (−1)."""
        self.count_terms_of(pod, other, node, sign)
        if self.required and all(t.selects(other.namespace, other.labels) for t in self.required):
            for term in self.required:
                _add(self.near, term, node, sign)
        for term in self.forbidden:
            if term.selects(other.namespace, other.labels):
                _add(self.far, term, node, sign)

    def count_terms_of(self, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        """Count the anti-affinity terms of another pod on the node that select the pod."""
        for term in other.anti_affinity:
            if term.selects(pod.namespace, pod.labels, self.labels):
                _add(self.existing, term, node, sign)

    def count_selected(
        self, counts: Counts, terms: Sequence[AffinityTerm], selecting: Sequence[AffinityTerm], nodes: Columns
    ) -> None:
        """Count the pods on all nodes that the `selecting` terms select together, in the domains of each of `terms`."""
        pods = pods_selected(selecting, nodes)
        for i in np.flatnonzero(pods).tolist():
            for term in terms:
                _add(counts, term, nodes.infos[i], int(pods[i]))


def _add(counts: Counts, term: AffinityTerm, node: NodeInfo, sign: int) -> None:
    value = node.labels.get(term.key)
    if value is not None:
        counts[term.key, value] += sign
        if not counts[term.key, value]:
            del counts[term.key, value]


class InterPodAffinity(AffinityHints, PodPreference, PreFilter, Filter):
    name = "InterPodAffinity"

    def __init__(self, args: PodPreferenceArguments, cluster: ProfileCluster) -> None:
        super().__init__(args, cluster)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        counts = _State(pod, self._cluster)
        for node in self._cluster.nodes_with_affinity():
            for other in node.with_affinity.values():
                counts.count_terms_of(pod, other, node, 1)
        if counts.required:
            counts.count_selected(counts.near, counts.required, counts.required, self._cluster.columns)
        for term in counts.forbidden:
            counts.count_selected(counts.far, (term,), (term,), self._cluster.columns)
        if not (counts.existing or counts.required or counts.forbidden):
            return None, SKIP
        state.write(self.name, counts)
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._counts(state).count(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._counts(state).count(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        counts = self._counts(state)
        labels = node.labels
        required = [(t.key in labels, counts.near[t.key, labels.get(t.key, "")]) for t in counts.required]
        if not is_near(required, _is_first(counts, pod)):
            return _AFFINITY
        if is_any(counts.far[t.key, labels[t.key]] for t in counts.forbidden if t.key in labels):
            return _ANTI
        return _EXISTING if is_any(counts.existing[label] for label in labels.items()) else SUCCESS

    def reach(self, pod: PodInfo, other: PodInfo) -> frozenset[str] | None:
        labels = self._cluster.labels_of(pod.namespace)
        required = [t.resolved(self._cluster.namespaces) for t in pod.affinity]
        if required and all(t.selects(other.namespace, other.labels) for t in required):
            return None  # the pod may not be the first of its group any more
        own = (t.resolved(self._cluster.namespaces) for t in pod.anti_affinity)
        keys = {t.key for t in own if t.selects(other.namespace, other.labels)}
        keys.update(t.key for t in other.anti_affinity if t.selects(pod.namespace, pod.labels, labels))
        return frozenset(keys)

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools:
        counts = self._counts(state)
        required = [(nodes.domains(t.key).has, _around(counts.near, t.key, nodes)) for t in counts.required]
        far = is_any(_around(counts.far, t.key, nodes) for t in counts.forbidden)
        existing = is_any(_around(counts.existing, key, nodes) for key in {key for key, _ in counts.existing})
        fits: Bools = ok & is_near(required, _is_first(counts, pod)) & np.logical_not(far | existing)
        return fits

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(PODS, ActionType.ADD | ActionType.DELETE | ActionType.POD_LABEL, self.pod_helps),
            Interest(NODES, ActionType.ADD | ActionType.NODE_LABEL, self.node_helps),
            Interest(NODES, ActionType.TAINT),
        )

    def _counts(self, state: CycleState) -> _State:
        found: _State = state.read(self.name)
        return found


def _is_first(counts: _State, pod: PodInfo) -> bool:
    """Whether the pod is the first of a group with affinity to itself, so that all nodes fit."""
    return not counts.near and all(t.selects(pod.namespace, pod.labels) for t in counts.required)


def _around(counts: Counts, key: str, nodes: Columns) -> Ints:
    """The count in each node's domain of a label."""
    domains = nodes.domains(key)
    return domains.at_nodes(np.array([counts[key, value] for value in domains.values], dtype=np.int64))
