"""LabelGroups: groups of pods by a label, updated by events."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.scheduler.profiles.plugin_api.events import PODS, ClusterEvent
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class LabelGroups:
    """Groups are named `namespace/value of the label`."""

    def __init__(self, label: str, handle: Handle) -> None:
        self._label = label
        self._handle = handle
        self._keys: dict[str, dict[str, None]] = {}
        """For each group its pods, possibly with deleted ones: the deletion of a pod that waits for a node is no
        event."""
        for pod in handle.pods():
            self.join(pod)

    def __len__(self) -> int:
        return len(self._keys)

    def name(self, pod: PodInfo) -> str:
        """A pod's group, or empty."""
        value = pod.labels.get(self._label, "")
        return f"{pod.namespace}/{value}" if value else ""

    def join(self, pod: PodInfo) -> str:
        """Count a pod as a member of its group; returns the group, or empty."""
        group = self.name(pod)
        if group:
            self._keys.setdefault(group, {})[pod.key] = None
        return group

    def observe(self, event: ClusterEvent) -> None:
        """Follow an event about a pod."""
        if event.kind not in PODS:
            return
        if event.new is not None:
            self.join(event.new)
        elif event.old is not None and (known := self._keys.get(group := self.name(event.old))):
            known.pop(event.old.key, None)
            if not known:
                del self._keys[group]

    def members(self, group: str) -> list[PodInfo]:
        """The pods that exist now."""
        found = list(self._of(group))
        if len(found) < len(self._keys.get(group, ())):
            self._keys[group] = {pod.key: None for pod in found}
        if not found:
            self._keys.pop(group, None)
        return found

    def _of(self, group: str) -> Iterator[PodInfo]:
        for key in self._keys.get(group, ()):
            pod = self._handle.pod(key)
            if pod is not None and self.name(pod) == group:
                yield pod
