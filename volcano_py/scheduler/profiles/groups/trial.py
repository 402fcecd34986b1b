"""Trial: a snapshot in which pods are placed and evicted, and all of it is undone. Kubernetes: the snapshot of a pod
group cycle.

The changes are in the nodes of `ProfileCluster` and in the ledger of claims only; the model remains as it is.
Nominations of pods that are placed do not count meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from volcano_py.scheduler.profiles.attempts.attempt import Found, NotFound, failure
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.faults import PluginFault, contained, expect
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.scheduler.profiles.profile import Profile


class Trial:
    def __init__(self, cluster: ProfileCluster) -> None:
        self._cluster = cluster
        self._undo: list[Callable[[], None]] = []

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo, at the end of the block, what happens in it."""
        mark = self.mark()
        try:
            yield
        finally:
            self.back_to(mark)

    def mark(self) -> int:
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Undo what has happened since a mark, in reverse order."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def place(self, profile: Profile, pod: PodInfo, found: Found) -> NotFound | None:
        """Assume a pod on its node, and reserve for it; returns why that fails."""
        mark = self.mark()
        nominated = self._cluster.nominated_node(pod)
        if nominated:
            self._cluster.nominate(pod, "")
            self._undo.append(lambda: self._cluster.nominate(pod, nominated))
        self._cluster.count(pod, found.node, 1)
        self._undo.append(lambda: self._cluster.count(pod, found.node, -1))
        try:
            for plugin in filter(found.state.concerns, profile.reserve):
                self._undo.append(partial(plugin.unreserve, found.state, pod, found.node))
                with contained(plugin.name, "Reserve"):
                    status = expect(plugin.reserve(found.state, pod, found.node), Status, plugin.name, "Reserve")
                if not status.ok:
                    self.back_to(mark)
                    if status.rejected:
                        return NotFound(status.message, frozenset((plugin.name,)))
                    return failure(str(PluginFault(plugin.name, "Reserve", status.message)))
        except PluginFault as fault:
            self.back_to(mark)
            return failure(str(fault))
        return None

    def evict(self, pod: PodInfo) -> Callable[[], None]:
        """Remove a pod from its node; returns the function that puts it back."""
        node = self._cluster.model.tasks[pod.key].node or ""
        self._cluster.count(pod, node, -1)
        gone = True

        def put_back() -> None:
            nonlocal gone
            if gone:
                gone = False
                self._cluster.count(pod, node, 1)

        self._undo.append(put_back)
        return put_back
