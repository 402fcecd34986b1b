"""The objects of this scheduler. Volcano: responsibleForPod, responsibleForNode, responsibleForPodGroup.

These are pods with its scheduler names, and pods of other schedulers once they are bound, because they use capacity.
With several schedulers a hash ring decides by the owner's name; with `--node-selector` only labelled nodes are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.scheduler.cache.ring import Ring
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE


class ObjectFilters:
    """`accepts(kind, object)`: whether the object is part of the model."""

    def __init__(
        self,
        scheduler_names: Iterable[str],
        ring: tuple[Ring, str] | None = None,
        node_labels: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self._ring: Any
        self._ring, self._mine = ring if ring is not None else (None, "")
        self._node_labels = frozenset(node_labels)
        self._kinds = {
            "Pod": self._pod,
            "PodGroup": self._pod_group,
            NATIVE: self._pod_group,
            COMPOSITE: self._pod_group,
            "Node": self._node,
        }

    def accepts(self, kind: str, obj: Any) -> bool:
        """Whether this scheduler is responsible for the object."""
        check = self._kinds.get(kind)
        return check is None or check(obj)

    def _pod(self, pod: Any) -> bool:
        if pod.spec.scheduler_name in self.scheduler_names and self._owns(_owner_or_self(pod)):
            return True
        return bool(pod.spec.node_name) and self._owns(pod.spec.node_name)

    def _pod_group(self, group: Any) -> bool:
        return self._owns(_owner_or_self(group))

    def _node(self, node: Any) -> bool:
        if not self._owns(node.metadata.name):
            return False
        if not self._node_labels:
            return True
        return not self._node_labels.isdisjoint((node.metadata.labels or {}).items())

    def _owns(self, key: str) -> bool:
        return self._ring is None or self._ring.owner(key) == self._mine


def _owner_or_self(obj: Any) -> str:
    owners = obj.metadata.owner_references
    name: str = owners[0].name if owners else obj.metadata.name
    return name


def parse_node_selector(entries: Iterable[str]) -> list[tuple[str, str]]:
    """Parse `key:value` entries; those without a value are ignored, as in Volcano."""
    pairs = []
    for entry in entries:
        key, colon, value = entry.partition(":")
        if colon and value.strip():
            pairs.append((key.strip(), value.strip()))
    return pairs
