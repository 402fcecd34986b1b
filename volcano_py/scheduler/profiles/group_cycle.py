"""One attempt for a whole PodGroup of scheduling.k8s.io. Kubernetes: schedule_one_podgroup.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from volcano_py.scheduler.profiles.attempt import Asked, Found, NotFound, failure, find
from volcano_py.scheduler.profiles.binding import BindingCycles
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod
from volcano_py.scheduler.profiles.status import SUCCESS, Status

_GROUP_FAILED = "pod group is unschedulable"
_ONLY_WAITS = "one or more plugins asked to wait and no plugin rejected pod"


class Failed(Protocol):
    """Puts a pod back into the queue."""

    def __call__(self, queued: QueuedPod, why: NotFound, *, retry: bool) -> None: ...


def run(
    members: Sequence[QueuedPod],
    profiles: Mapping[str, Profile],
    cycles: BindingCycles,
    cluster: Cluster,
    failed: Failed,
    now: float,
) -> None:
    """All waiting members of a PodGroup in turn; they are bound if Permit approves at least one of them.

    A member for which pods have to be evicted counts as if it were on its node. The group then binds nothing yet:
    if Permit approves, all members are nominated to their nodes; if it does not, none is.
    """
    tried: list[tuple[QueuedPod, Found | NotFound, str]] = []
    approved = False
    waits: tuple[str, ...] = ()
    for queued in sorted(members, key=lambda q: (-q.pod.priority, q.first_attempt or now, q.since)):
        profile = profiles[queued.pod.pod.spec.scheduler_name]
        found = find(profile, cluster, queued.pod)
        if isinstance(found, Asked):
            found = failure("a plugin waits for an answer from another program")
        node = found.node if isinstance(found, Found) else found.nominated
        if node:
            cluster.place(queued.pod, node)
            status = _permit(profile, queued.pod, node)
            approved = approved or status.ok
            waits = waits or status.reasons
        tried.append((queued, found, node or ""))
    lost = NotFound(", ".join((_GROUP_FAILED, *waits, _ONLY_WAITS)), frozenset(), nominated="")
    preempts = any(node and isinstance(found, NotFound) for _, found, node in tried)
    binds = approved and not preempts
    for queued, found, node in tried:
        if node and not (binds and isinstance(found, Found)):
            cluster.unplace(queued.pod, node)
    for queued, found, node in tried:
        if isinstance(found, NotFound):
            failed(queued, found if approved or not node else lost._replace(victims=found.victims), retry=True)
        elif binds:
            cycles.start(queued, profiles[queued.pod.pod.spec.scheduler_name], found)
        else:
            failed(queued, lost._replace(nominated=node if approved else ""), retry=True)


def _permit(profile: Profile, pod: PodInfo, node: str) -> Status:
    """What the first Permit plugin says that does not approve, without holding the pod."""
    for plugin in profile.permit:
        status, _timeout = plugin.permit(CycleState(), pod, node)
        if not status.ok:
            return status
    return SUCCESS
