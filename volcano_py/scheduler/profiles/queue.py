"""The scheduling queue: pods that wait to be tried. Kubernetes: backend/queue/scheduling_queue.go, backoff_queue.go.

A pod is in one of four places: *active* (tried next), *back-off* (after a refusal or an error), *unschedulable* (until
an event may help, at most five minutes) or gated, which is *unschedulable* with a plugin that keeps it from entering.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

from volcano_py.scheduler.profiles.events import Event, Kind, pod_events
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile

_LONGEST_STAY = 300.0
"""Seconds after which an unschedulable pod is tried again without an event."""
_FLUSH_EVERY = 30
"""Seconds between looking for such pods."""


class Place(Enum):
    ACTIVE = auto()
    BACKOFF = auto()
    ERRORS = auto()
    """Back-off after an error: it is never cut short."""
    UNSCHEDULABLE = auto()


class QueuedPod:
    """A waiting pod. Times are in seconds."""

    def __init__(self, pod: PodInfo, now: float) -> None:
        self.pod = pod
        self.since = now
        """When it last entered the queue."""
        self.first_attempt: float | None = None
        self.rejections = 0
        self.errors = 0
        """Errors in a row."""
        self.refused_by: set[str] = set()
        self.gated = False
        self.place = Place.UNSCHEDULABLE


class SchedulingQueue:
    """`early`: with nothing active, a refused pod is taken before its back-off ends (SchedulerPopFromBackoffQ)."""

    def __init__(self, profiles: Mapping[str, Profile], initial: float, longest: float, early: bool) -> None:
        self._profiles = profiles
        self._initial = initial
        self._longest = longest
        self._early = early
        self._sort_key = next(iter(profiles.values())).queue_sort.sort_key
        self._pods: dict[str, QueuedPod] = {}
        self.on_enter: Callable[[PodInfo], None] = lambda pod: None
        """Called with a pod that is new or updated and passes the gates."""

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def sizes(self) -> dict[str, int]:
        """How many pods are active, in back-off, unschedulable and gated."""
        found = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        for queued in self._pods.values():
            match queued.place:
                case Place.ACTIVE:
                    found["active"] += 1
                case Place.BACKOFF | Place.ERRORS:
                    found["backoff"] += 1
                case Place.UNSCHEDULABLE:
                    found["gated" if queued.gated else "unschedulable"] += 1
        return found

    def add(self, pod: PodInfo, now: float) -> None:
        """A new pod."""
        queued = self._pods[pod.key] = QueuedPod(pod, now)
        self._enter(queued, Place.ACTIVE)
        if not queued.gated:
            self.on_enter(pod)

    def update(self, old: PodInfo, new: PodInfo, now: float) -> None:
        """A waiting pod changed: it is tried again if that may help."""
        queued = self._pods.get(new.key)
        if queued is None:
            return
        queued.pod = new
        if queued.place is not Place.UNSCHEDULABLE:
            return
        for event in pod_events(Kind.UNSCHEDULED_POD, old, new):
            if self._worth_trying(queued, event):
                self._requeue(queued, now)
                if queued.place is not Place.UNSCHEDULABLE:
                    return

    def delete(self, key: str) -> None:
        self._pods.pop(key, None)

    def move(self, event: Event, now: float) -> None:
        """Try the pods again that the event may help."""
        for queued in list(self._pods.values()):
            if queued.place is Place.UNSCHEDULABLE and self._worth_trying(queued, event):
                self._requeue(queued, now)

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try; it leaves the queue until `fail` puts it back."""
        active = [q for q in self._pods.values() if q.place is Place.ACTIVE]
        if active:
            queued = min(active, key=lambda q: self._sort_key(q.pod, q.since))
        else:
            waiting = [q for q in self._pods.values() if q.place is Place.BACKOFF] if self._early else []
            if not waiting:
                return None
            queued = min(waiting, key=self._backoff_order)
        return self._take(queued, now)

    def take_group(self, group: str, now: float) -> list[QueuedPod]:
        """All waiting members of a group that are not gated."""
        members = [q for q in self._pods.values() if q.pod.group == group and not q.gated]
        return [self._take(q, now) for q in members]

    def fail(self, queued: QueuedPod, now: float, refused_by: Iterable[str], *, retry: bool = False) -> None:
        """Put a pod back that was refused by these plugins, or that failed with an error if there are none.

        `retry`: to back-off in any case.
        """
        queued.refused_by = set(refused_by)
        queued.since = now
        if queued.refused_by:
            queued.rejections, queued.errors = queued.rejections + 1, 0
        else:
            queued.errors += 1
        self._pods[queued.pod.key] = queued
        queued.place = Place.UNSCHEDULABLE
        if retry or not queued.refused_by:
            self._requeue(queued, now)

    def tick(self, now: float) -> None:
        """At every whole second: end of back-offs, and of stays that are too long."""
        for queued in list(self._pods.values()):
            if queued.place in (Place.BACKOFF, Place.ERRORS) and not self._backing_off(queued, now):
                queued.place = Place.ACTIVE
        if int(now) % _FLUSH_EVERY == 0:
            for queued in list(self._pods.values()):
                if queued.place is Place.UNSCHEDULABLE and now - queued.since > _LONGEST_STAY:
                    self._requeue(queued, now)

    def _take(self, queued: QueuedPod, now: float) -> QueuedPod:
        del self._pods[queued.pod.key]
        queued.refused_by = set()
        if queued.first_attempt is None:
            queued.first_attempt = now
        return queued

    def _worth_trying(self, queued: QueuedPod, event: Event) -> bool:
        if not queued.refused_by:
            return True
        profile = self._profiles[queued.pod.pod.spec.scheduler_name]
        for name in queued.refused_by:
            for interest in profile.interests.get(name, ()):
                if interest.matches(event):
                    hint = interest.hint
                    if hint is None or hint(queued.pod, event.old, event.new):
                        return True
        return False

    def _requeue(self, queued: QueuedPod, now: float) -> None:
        if not self._backing_off(queued, now):
            self._enter(queued, Place.ACTIVE)
        else:
            self._enter(queued, Place.BACKOFF if queued.refused_by else Place.ERRORS)

    def _enter(self, queued: QueuedPod, place: Place) -> None:
        """Move a pod to a place if the PreEnqueue plugins agree; else it stays gated."""
        status = self._profiles[queued.pod.pod.spec.scheduler_name].pre_enqueue(queued.pod)
        queued.gated = not status.ok
        if queued.gated:
            queued.refused_by.add(status.plugin)
            queued.place = Place.UNSCHEDULABLE
        else:
            queued.place = place

    def _backoff_end(self, queued: QueuedPod) -> float:
        count = queued.errors or queued.rejections
        if not count:
            return 0.0
        end = queued.since + backoff(count, self._initial, self._longest)
        return float(math.floor(end)) if self._early else end

    def _backing_off(self, queued: QueuedPod, now: float) -> bool:
        end = self._backoff_end(queued)
        return end > 0 and end >= (math.floor(now) if self._early else now)

    def _backoff_order(self, queued: QueuedPod) -> tuple[float, ...]:
        return (self._backoff_end(queued), *self._sort_key(queued.pod, queued.since))


def backoff(count: int, initial: float, longest: float) -> float:
    """Seconds to wait after `count` refusals: doubled each time."""
    return min(initial * 2.0 ** min(count - 1, 60), longest) if count else 0.0
