"""Feed: what the cache sees, as events of the profiles. Kubernetes: the scheduler's eventhandlers.go.

The model is changed first; this only reports to the profiles' queue what may help a waiting pod. Objects that
are no pods of a profile cost nothing while no pod waits. A pod that is a member of a gang is placed by the session,
whatever its profile is.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api.core import Pod
from volcano_py.scheduler.model.claims.pod_claims import KINDS as CLAIM_KINDS
from volcano_py.scheduler.model.jobs.group_names import group_of
from volcano_py.scheduler.profiles.cluster_events import ClaimObjectChanged, NodeChanged, PodChanged
from volcano_py.scheduler.profiles.scheduler import PodScheduler

_FINISHED = ("Succeeded", "Failed")


class Feed:
    """Forwards events to a PodScheduler. `names`: the schedulerNames of its profiles."""

    def __init__(self, scheduler: PodScheduler, names: frozenset[str]) -> None:
        self._scheduler = scheduler
        self._names = names

    def changed(self, kind: str, old: Any, new: Any, now: float) -> None:
        """An object was added (`old` is None), changed, or deleted (`new` is None)."""
        if kind == "Pod":
            self._pod(old, new, now)
        elif kind == "Node" and self._scheduler.needs_events:
            self._scheduler.handle(NodeChanged(old, new), now)
        elif kind in CLAIM_KINDS and self._scheduler.needs_events:
            self._scheduler.handle(ClaimObjectChanged(kind, old, new), now)

    def _pod(self, old: Pod | None, new: Pod | None, now: float) -> None:
        if not (self._is_named(old) or self._is_named(new) or self._scheduler.needs_events):
            return
        before, after, info = self._shown(old), self._shown(new), self._scheduler.cluster.info
        if before is not None or after is not None:
            event = PodChanged(info(before) if before is not None else None, info(after) if after is not None else None)
            self._scheduler.handle(event, now)

    def _is_named(self, pod: Pod | None) -> bool:
        return pod is not None and pod.spec.scheduler_name in self._names

    def _shown(self, pod: Pod | None) -> Pod | None:
        """The pod as the profiles see it: those on a node that have not ended, and those that they schedule."""
        if pod is None or pod.status.phase in _FINISHED:
            return None
        if pod.spec.node_name:
            return pod
        return pod if self._is_named(pod) and not pod.metadata.deletion_timestamp and not group_of(pod) else None
