"""One attempt for a whole PodGroup of scheduling.k8s.io. Kubernetes: schedule_one_podgroup.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from volcano_py.scheduler.profiles.attempts.attempt import AnswerPending, Found, NotFound, failure, find
from volcano_py.scheduler.profiles.attempts.binding import BindingCycles
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import Again, QueuedPod

_GROUP_FAILED = "pod group is unschedulable"
_MOST_OUTCOMES = 20
"""The number of different outcomes after which a group waits for an event."""
_ONLY_WAITS = "one or more plugins asked to wait and no plugin rejected pod"


Outcome = tuple[tuple[str, str, str | None], ...]
"""Member, message and nominated node of all members, after an attempt without other effects."""


class Failed(Protocol):
    """Puts a pod back into the queue."""

    def __call__(self, queued: QueuedPod, why: NotFound, again: Again) -> None: ...


class GroupCycles:
    """Tries groups. A group is tried again at once until an attempt repeats an outcome; then it waits for an event.

    Kubernetes retries without a pause while victims terminate, and changes the nominations back and forth.
    """

    def __init__(
        self, profiles: Mapping[str, Profile], cycles: BindingCycles, cluster: ProfileCluster, failed: Failed
    ) -> None:
        self._profiles = profiles
        self._cycles = cycles
        self._cluster = cluster
        self._failed = failed
        self._seen: dict[str, set[Outcome]] = {}
        """Group to the outcomes since it last bound or evicted a pod."""

    def run(self, members: Sequence[QueuedPod], now: float) -> None:
        """Try all waiting members of a PodGroup in turn; they are bound if Permit approves at least one of them.

        A member for which pods have to be evicted counts as if it were on its node. The group then binds no pod yet: if
        Permit approves, all members are nominated to their nodes; else none is.
        """
        tried: list[tuple[QueuedPod, Found | NotFound, str]] = []
        approved = False
        waits: tuple[str, ...] = ()
        for queued in members:
            self._cluster.nominate(queued.pod, "")
        for queued in sorted(members, key=lambda q: (-q.pod.priority, q.first_attempt or now, q.since)):
            profile = self._profiles[queued.pod.pod.spec.scheduler_name]
            found = find(profile, self._cluster, queued.pod)
            if isinstance(found, AnswerPending):
                found = failure("a plugin waits for the response of another program")
            node = found.node if isinstance(found, Found) else found.nominated
            if node:
                self._cluster.place(queued.pod, node)
                status = _permit(profile, queued.pod, node)
                approved = approved or status.ok
                waits = waits or status.reasons
            tried.append((queued, found, node or ""))
        lost = NotFound(", ".join((_GROUP_FAILED, *waits, _ONLY_WAITS)), frozenset(), nominated="")
        preempts = any(node and isinstance(found, NotFound) for _, found, node in tried)
        binds = approved and not preempts
        for queued, found, node in tried:
            if node and not (binds and isinstance(found, Found)):
                self._cluster.unplace(queued.pod, node)
        failures: list[tuple[QueuedPod, NotFound]] = []
        for queued, found, node in tried:
            if isinstance(found, NotFound):
                failures.append((queued, found if approved or not node else lost._replace(victims=found.victims)))
            elif binds:
                self._cycles.start(queued, self._profiles[queued.pod.pod.spec.scheduler_name], found)
            else:
                failures.append((queued, lost._replace(nominated=node if approved else "")))
        changes = binds or any(why.victims for _, why in failures)
        again = Again.SOON if changes or self._is_new(members[0].pod.group, failures) else Again.AFTER_EVENT
        if changes:
            self._seen.pop(members[0].pod.group, None)
        for queued, why in failures:
            self._failed(queued, why, again)

    def _is_new(self, group: str, failures: Sequence[tuple[QueuedPod, NotFound]]) -> bool:
        """Whether this outcome is the first of its kind."""
        outcome = tuple(sorted((q.pod.key, why.message, why.nominated) for q, why in failures))
        seen = self._seen.setdefault(group, set())
        if outcome in seen or len(seen) == _MOST_OUTCOMES:
            return False
        seen.add(outcome)
        return True


def _permit(profile: Profile, pod: PodInfo, node: str) -> Status:
    """The status of the first Permit plugin that does not approve, without holding the pod."""
    for plugin in profile.permit:
        status, _timeout = plugin.permit(CycleState(), pod, node)
        if not status.ok:
            return status
    return SUCCESS
