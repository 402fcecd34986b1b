"""Required affinity and anti-affinity between pods. Kubernetes: InterPodAffinity, filtering.go.

The score is in `pod_preference`; both are points of one plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import NODES, PODS, Action, Interest
from volcano_py.scheduler.profiles.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugins.pod_affinity_hints import AffinityHints
from volcano_py.scheduler.profiles.plugins.pod_preference import Arguments, PodPreference
from volcano_py.scheduler.profiles.pod_info import PodInfo, Term
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status, unresolvable, unschedulable

_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
_ANTI = unschedulable("node(s) didn't match pod anti-affinity rules")
_EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

Counts = Counter[tuple[str, str]]
"""(topology key, value) to a number of pods and terms."""


class _State:
    """Counts per domain: pods that the pod's own terms select, and terms of others that refuse the pod."""

    def __init__(self, pod: PodInfo, cluster: Cluster) -> None:
        self.labels = cluster.labels_of(pod.namespace)
        self.wanted = [t.resolved(cluster.namespaces) for t in pod.affinity]
        self.unwanted = [t.resolved(cluster.namespaces) for t in pod.anti_affinity]
        self.near: Counts = Counter()
        self.far: Counts = Counter()
        self.existing: Counts = Counter()

    def clone(self) -> _State:
        other = object.__new__(_State)
        other.__dict__.update(self.__dict__)
        other.near, other.far, other.existing = Counter(self.near), Counter(self.far), Counter(self.existing)
        return other

    def count(self, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        """`other` comes to the node, or leaves it."""
        for term in other.anti_affinity:
            if term.selects(pod, self.labels):
                _add(self.existing, term, node, sign)
        if self.wanted and all(t.selects(other, None) for t in self.wanted):
            for term in self.wanted:
                _add(self.near, term, node, sign)
        for term in self.unwanted:
            if term.selects(other, None):
                _add(self.far, term, node, sign)


def _add(counts: Counts, term: Term, node: NodeInfo, sign: int) -> None:
    value = node.labels.get(term.key)
    if value is not None:
        counts[term.key, value] += sign
        if not counts[term.key, value]:
            del counts[term.key, value]


class InterPodAffinity(AffinityHints, PodPreference, PreFilter, Filter):
    name = "InterPodAffinity"

    def __init__(self, args: Arguments, cluster: Cluster) -> None:
        super().__init__(args, cluster)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        counts = _State(pod, self._cluster)
        if counts.wanted or counts.unwanted:
            for node in self._cluster.nodes.values():
                for other in node.pods.values():
                    counts.count(pod, other, node, 1)
        else:
            for node in self._cluster.nodes_with_affinity():
                for other in node.with_affinity.values():
                    counts.count(pod, other, node, 1)
        if not (counts.existing or counts.wanted or counts.unwanted):
            return None, SKIP
        state.write(self.name, counts)
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._counts(state).count(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._counts(state).count(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        counts = self._counts(state)
        if not _near(counts, pod, node):
            return _AFFINITY
        if any(counts.far[t.key, node.labels[t.key]] > 0 for t in counts.unwanted if t.key in node.labels):
            return _ANTI
        if any(counts.existing[key, value] > 0 for key, value in node.labels.items()):
            return _EXISTING
        return SUCCESS

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(PODS, Action.ADD | Action.DELETE | Action.POD_LABEL, self.pod_helps),
            Interest(NODES, Action.ADD | Action.NODE_LABEL, self.node_helps),
            Interest(NODES, Action.TAINT),
        )

    def _counts(self, state: CycleState) -> _State:
        found: _State = state.read(self.name)
        return found


def _near(counts: _State, pod: PodInfo, node: NodeInfo) -> bool:
    """Whether the pods that the pod must be near are in the node's domains."""
    found = True
    for term in counts.wanted:
        value = node.labels.get(term.key)
        if value is None:
            return False
        found = found and counts.near[term.key, value] > 0
    if found:
        return True
    # The first of a group that wants to be together may go anywhere.
    return not counts.near and all(t.selects(pod, None) for t in counts.wanted)
