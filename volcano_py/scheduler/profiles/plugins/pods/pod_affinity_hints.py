"""The events that can help a pod that InterPodAffinity rejected. Kubernetes: InterPodAffinity, queueing hints."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api.core import Node
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.rules.pod_affinity import AffinityTerm


class AffinityHints:
    _cluster: ProfileCluster

    def pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        """Whether a pod that was created, deleted, or got other labels may help."""
        own = new is not None and new.pod.metadata.uid == pod.pod.metadata.uid
        there = new if new is not None else old
        if not own and (there is None or not (there.node or there.pod.status.nominated_node_name)):
            return False
        required, forbidden = self._resolved(pod.affinity), self._resolved(pod.anti_affinity)
        if old is not None and new is not None:
            if own:
                return True
            if not _all(required, old) and _all(required, new):
                return True
            return _any(forbidden, old) and not _any(forbidden, new)
        if new is not None:
            return _all(required, new)
        if old is None:
            return False
        labels = self._cluster.labels_of(pod.namespace)
        return _any(forbidden, old) or any(t.selects(pod.namespace, pod.labels, labels) for t in old.anti_affinity)

    def node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        """Whether a node that was created, or got another topology label, may help."""
        if new is None:
            return False
        now = new.metadata.labels or {}
        before = (old.metadata.labels or {}) if old is not None else {}
        for term in pod.affinity:
            if term.key in now and (old is None or before.get(term.key) != now[term.key]):
                return True
        # A node without the key did not reject the pod.
        return any(old is None or (t.key in before and before[t.key] != now.get(t.key)) for t in pod.anti_affinity)

    def _resolved(self, terms: Sequence[AffinityTerm]) -> list[AffinityTerm]:
        return [t.resolved(self._cluster.namespaces) for t in terms]


def _all(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    return bool(terms) and all(t.selects(pod.namespace, pod.labels) for t in terms)


def _any(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    return any(t.selects(pod.namespace, pod.labels) for t in terms)
