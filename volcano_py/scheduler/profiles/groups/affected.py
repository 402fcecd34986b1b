"""Affected: which of the pods that a group's trial has placed may not fit any more when victims are put back.

Kubernetes evaluates every placed pod for every unit. Here it is those on the nodes of the unit, and those with a rule
that the unit's pods can change from another node (`Filter.reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from volcano_py.scheduler.profiles.attempts.attempt import Found
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod

_Labels = tuple[str, frozenset[tuple[str, str]]]
"""A namespace with labels of a pod in it."""


class AffectedPods:
    """`placed`: the pods of the trial with their nodes."""

    def __init__(
        self,
        cluster: ProfileCluster,
        placed: Sequence[tuple[QueuedPod, Found]],
        profile_of: Callable[[PodInfo], Profile],
    ) -> None:
        self._cluster = cluster
        self._near: dict[str, list[PodInfo]] = {}
        self._nodes = {q.pod.key: found.node for q, found in placed}
        alike: dict[object, _Alike] = {}
        for q, found in placed:
            self._near.setdefault(found.node, []).append(q.pod)
            profile = profile_of(q.pod)
            skipped = frozenset(found.state.skip_filter)
            key = (profile.name, cluster.class_of(q.pod), skipped, _labels(q.pod))
            if key not in alike:
                alike[key] = _Alike(cluster, profile, q.pod, skipped)
            alike[key].add(q.pod, found.node)
        self._alike = [*alike.values()]

    def by(self, unit: Sequence[PodInfo]) -> Iterator[tuple[PodInfo, str]]:
        """The pods that a unit may affect, with their nodes."""
        tasks = self._cluster.model.tasks
        found: dict[str, PodInfo] = {}
        for pod in unit:
            node = tasks[pod.key].node or ""
            found.update((near.key, near) for near in self._near.get(node, ()))
            for alike in self._alike:
                found.update((far.key, far) for far in alike.by(pod, node))
        return ((pod, self._nodes[key]) for key, pod in found.items())


class _Alike:
    """Placed pods that the rules of a profile do not distinguish. `pod`: one of them."""

    def __init__(self, cluster: ProfileCluster, profile: Profile, pod: PodInfo, skipped: frozenset[str]) -> None:
        self._cluster = cluster
        self._profile = profile
        self._pod = pod
        self._skipped = skipped
        self._pods: list[tuple[PodInfo, str]] = []
        self._at: dict[str, dict[str, list[PodInfo]]] = {}
        """The pods by the values of a label of their nodes."""
        self._reach: dict[_Labels, frozenset[str] | None] = {}

    def add(self, pod: PodInfo, node: str) -> None:
        self._pods.append((pod, node))

    def by(self, other: PodInfo, node: str) -> Iterator[PodInfo]:
        """The pods that another one on a node may affect from there."""
        if other.has_terms:
            reach = self._profile.reach(self._pod, other, self._skipped)
        else:
            labels = _labels(other)
            if labels not in self._reach:
                self._reach[labels] = self._profile.reach(self._pod, other, self._skipped)
            reach = self._reach[labels]
        if reach is None:
            yield from (pod for pod, _ in self._pods)
            return
        for key in reach:
            value = self._label(node, key)
            if value is not None:
                yield from self._by_value(key).get(value, ())

    def _by_value(self, key: str) -> Mapping[str, list[PodInfo]]:
        if key not in self._at:
            self._at[key] = {}
            for pod, node in self._pods:
                value = self._label(node, key)
                if value is not None:
                    self._at[key].setdefault(value, []).append(pod)
        return self._at[key]

    def _label(self, node: str, key: str) -> str | None:
        info = self._cluster.nodes_everywhere.get(node)
        return info.labels.get(key) if info is not None else None


def _labels(pod: PodInfo) -> _Labels:
    return pod.namespace, frozenset(pod.labels.items())
