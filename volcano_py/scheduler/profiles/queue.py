"""The scheduling queue: pods that wait to be tried. Kubernetes: backend/queue/scheduling_queue.go, backoff_queue.go.

A pod is in one of four places: *active* (tried next), *back-off* (after a rejection or an error), *unschedulable*
(until an event may help, at most five minutes) or gated, which is *unschedulable* because of a PreEnqueue plugin.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from volcano_py.api.core import Pod
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, Decision, Fail, ReportEvent
from volcano_py.scheduler.profiles.faults import PluginFault
from volcano_py.scheduler.profiles.plugin_api.events import ActionType, ClusterEvent, Interest, Kind, pod_events
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code
from volcano_py.scheduler.profiles.profile import Profile, SortKey

_LONGEST_STAY = 300.0
"""Seconds after which an unschedulable pod is tried again without an event."""
_FLUSH_EVERY = 30.0
"""Seconds between checks for such pods."""
_LAST: SortKey = ((math.inf, ""),)


class Place(Enum):
    ACTIVE = auto()
    BACKOFF = auto()
    ERRORS = auto()
    """Back-off after an error: it is never shortened."""
    UNSCHEDULABLE = auto()


class Again(Enum):
    """When a pod that failed is tried again."""

    AS_REJECTED = auto()
    """After an event that may help, or after its back-off if it was an error."""
    SOON = auto()
    """After its back-off in any case."""
    AFTER_EVENT = auto()
    """After any event, except a change of the pod's own status."""


PARTS = ("active", "backoff", "unschedulable", "gated")
"""The parts of a queue, by kube-scheduler's names."""
ENTITIES = ("pod", "podgroup")


class QueuedPod:
    """A waiting pod. Times are in seconds."""

    entity = "pod"
    """What waits in the entry, one of ENTITIES."""

    def __init__(self, pod: PodInfo, now: float) -> None:
        self.pod = pod
        self.since = now
        """When it last entered the queue."""
        self.first_attempt: float | None = None
        self.rejections = 0
        self.errors = 0
        """The number of consecutive errors."""
        self.rejected_by: set[str] = set()
        self.helped_by: set[str] = set()
        """The plugins that would try the pod again after an event that occurred while it waits for a response."""
        self.again = Again.AS_REJECTED
        self.gated = False
        self.behind_gate = Place.ACTIVE
        """The place of a gated pod after its gates."""
        self.place = Place.UNSCHEDULABLE
        self.turn = 0
        """Of pods with equal sort keys, the one with the lower turn is tried first."""
        self.ticket = 0
        """The number of its valid entry in a heap."""
        self.rejected: _Rejected | None = None
        """Its key among the unschedulable pods."""
        self.attempts = 0

    @property
    def count(self) -> int:
        """The number of pods that wait in this entry."""
        return 1

    def pods(self) -> Iterable[QueuedPod]:
        """The pods that wait in this entry of the queue: itself, or the members of a group."""
        return (self,)

    def longest(self, limit: float) -> float:
        """The longest back-off."""
        return limit


class _Rejected(NamedTuple):
    profile: str
    plugins: frozenset[str]
    any_event: bool
    """Whether every event helps."""


Entry = tuple[float, SortKey, int, int, QueuedPod]
"""End of back-off (0 if active), sort key, turn, ticket."""


class SchedulingQueue:
    """`early`: with no active pod, a rejected pod is tried before its back-off ends (SchedulerPopFromBackoffQ).

    `emit` gets the decisions about pods that do not pass the gates because of an error.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        initial: float,
        longest: float,
        early: bool,
        emit: Callable[[Decision], None],
    ) -> None:
        self._profiles = profiles
        self._initial = initial
        self._longest = longest
        self._early = early
        self._emit = emit
        self._pods: dict[str, QueuedPod] = {}
        self._heaps: dict[Place, list[Entry]] = {p: [] for p in (Place.ACTIVE, Place.BACKOFF, Place.ERRORS)}
        """Entries whose pod has another ticket or place are void."""
        self._unschedulable: dict[_Rejected, dict[str, QueuedPod]] = {}
        """Unschedulable pods by the cause of the rejection, so that an event that helps none of them is cheap."""
        self._numbers = itertools.count(1)
        self._next_flush = _FLUSH_EVERY
        self.incoming: Counter[tuple[str, str]] = Counter()
        """How often pods entered a part of the queue, by part and by cause (kube-scheduler's names)."""
        self.incoming_entities: Counter[tuple[str, str, str]] = Counter()
        """The same for entries, by their kind as well."""
        self._cause = ""
        self.on_enter: Callable[[PodInfo], None] = lambda pod: None
        """Called with a pod that is new or updated and passes the gates."""

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def sizes(self) -> dict[str, int]:
        """How many pods are active, in back-off, unschedulable and gated."""
        found = dict.fromkeys(PARTS, 0)
        for queued in self._pods.values():
            found[_part_of(queued)] += queued.count
        return found

    def entities(self) -> dict[tuple[str, str], int]:
        """How many entries each part has, by kind: single pods, or groups."""
        found = {(part, kind): 0 for part in PARTS for kind in ENTITIES}
        for queued in self._pods.values():
            found[_part_of(queued), queued.entity] += 1
        return found

    def add(self, pod: PodInfo, now: float) -> None:
        """Add a new pod."""
        self._cause = "PodAdd"
        queued = QueuedPod(pod, now)
        self._insert(queued)
        self._enter(queued, Place.ACTIVE)
        if not queued.gated:
            self.on_enter(pod)

    def update(self, old: PodInfo, new: PodInfo, now: float) -> None:
        """Update a waiting pod: it is tried again if the change may help."""
        queued = self._pods.get(new.key)
        if queued is None:
            return
        queued.pod = new
        self._cause = ""
        if queued.place is not Place.UNSCHEDULABLE:
            self._push(queued)
            return
        for event in pod_events(Kind.UNSCHEDULED_POD, old, new):
            if event.action is ActionType.OTHER and not _changed(old.pod, new.pod):
                continue
            if self._worth_trying(queued, event):
                self._cause = "PodUpdate"
                self._requeue(queued, now)
                if queued.place is not Place.UNSCHEDULABLE:
                    return

    def delete(self, key: str) -> None:
        queued = self._pods.get(key)
        if queued is not None:
            self._remove(queued)

    def _remove(self, queued: QueuedPod) -> None:
        self._pods.pop(queued.pod.key, None)
        queued.ticket = 0
        self._leave(queued)

    def move(self, event: ClusterEvent, now: float) -> None:
        """Try the pods again that the event may help."""
        helped: list[QueuedPod] = []
        for rejected, pods in self._unschedulable.items():
            if rejected.any_event:
                helped += pods.values()
            elif interests := self._interests(rejected, event):
                helped += [q for q in pods.values() if any(i.helps(p.pod, event) for i in interests for p in q.pods())]
        self._cause = f"{event.kind.value}{(event.action.name or '').title().replace('_', '')}"
        for queued in helped:
            self._requeue(queued, now)

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try; it leaves the queue until `fail` returns it."""
        queued = self._first(Place.ACTIVE)
        if queued is None and self._early:
            queued = self._first(Place.BACKOFF)
        return self._take(queued, now) if queued is not None else None

    def take_group(self, group: str, now: float) -> list[QueuedPod]:
        """Remove and return all waiting members of a group that are not gated."""
        members = [q for q in self._pods.values() if q.pod.group == group and not q.gated]
        return [self._take(q, now) for q in members]

    def put_back(self, queued: QueuedPod) -> None:
        """Return a pod whose attempt was interrupted; it is tried again at once."""
        self._cause = "ForceActivate"
        self._insert(queued)
        queued.place = Place.ACTIVE
        self._push(queued)

    def activate(self, key: str, now: float) -> None:
        """Try an unschedulable pod again without an event."""
        self._cause = "ForceActivate"
        queued = self._pods.get(key)
        if queued is not None and queued.place is Place.UNSCHEDULABLE:
            self._requeue(queued, now)

    def reconsider(self, key: str, now: float) -> None:
        """Evaluate the gates of a pod again after the response for a pending PreEnqueue plugin."""
        self._cause = "ForceActivate"
        queued = self._pods.get(key)
        if queued is not None and queued.gated:
            queued.rejected_by.clear()
            self._enter(queued, queued.behind_gate if self._backing_off(queued, now) else Place.ACTIVE)

    def fail(self, queued: QueuedPod, now: float, rejected_by: Iterable[str], again: Again = Again.AS_REJECTED) -> None:
        """Return a pod that these plugins rejected, or that failed with an error if there are none."""
        self._cause = "ScheduleAttemptFailure"
        queued.rejected_by = set(rejected_by)
        queued.again = again
        queued.since = now
        if queued.rejected_by:
            queued.rejections, queued.errors = queued.rejections + 1, 0
        else:
            queued.errors += 1
        self._insert(queued)
        self._rest(queued)
        if again is Again.SOON or (again is Again.AS_REJECTED and not queued.rejected_by):
            self._requeue(queued, now)

    def tick(self, now: float) -> None:
        """Called at every whole second: ends back-offs, and stays that are too long."""
        self._cause = "BackoffComplete"
        for place in (Place.BACKOFF, Place.ERRORS):
            while (queued := self._first(place)) is not None and not self._backing_off(queued, now):
                self._backoff_ended(queued)
        if now >= self._next_flush:
            self._cause = "UnschedulableTimeout"
            self._next_flush = (math.floor(now / _FLUSH_EVERY) + 1) * _FLUSH_EVERY
            resting = [q for pods in self._unschedulable.values() for q in pods.values()]
            for queued in [q for q in resting if now - q.since > _LONGEST_STAY]:
                self._requeue(queued, now)

    def _backoff_ended(self, queued: QueuedPod) -> None:
        queued.place = Place.ACTIVE
        self._push(queued)

    def next_deadline(self) -> float | None:
        """The first whole second at which `tick` may have an effect; None: no pod waits for a time."""
        heads = (self._first(p) for p in (Place.BACKOFF, Place.ERRORS))
        times = [math.floor(self._backoff_end(q)) + 1.0 for q in heads if q is not None]
        return min([*times, self._next_flush] if self._unschedulable else times, default=None)

    def _insert(self, queued: QueuedPod) -> None:
        queued.turn = next(self._numbers)
        self._pods[queued.pod.key] = queued

    def _push(self, queued: QueuedPod) -> None:
        """Create the entry of a pod in the heap of its place."""
        self._leave(queued)
        self._count("active" if queued.place is Place.ACTIVE else "backoff", queued)
        queued.ticket = next(self._numbers)
        end = 0.0 if queued.place is Place.ACTIVE else self._backoff_end(queued)
        entry = (end, self._sort_key(queued), queued.turn, queued.ticket, queued)
        heapq.heappush(self._heaps[queued.place], entry)

    def _rest(self, queued: QueuedPod) -> None:
        self._leave(queued)
        self._count("gated" if queued.gated else "unschedulable", queued)
        queued.place = Place.UNSCHEDULABLE
        queued.ticket = 0
        any_event = not queued.rejected_by or (queued.again is Again.AFTER_EVENT and not queued.gated)
        rejected = _Rejected(queued.pod.pod.spec.scheduler_name, frozenset(queued.rejected_by), any_event)
        queued.rejected = rejected
        self._unschedulable.setdefault(rejected, {})[queued.pod.key] = queued

    def _count(self, part: str, queued: QueuedPod) -> None:
        if self._cause:
            self.incoming[part, self._cause] += queued.count
            self.incoming_entities[part, self._cause, queued.entity] += 1

    def _leave(self, queued: QueuedPod) -> None:
        """Remove a pod from the unschedulable ones, if it is there."""
        if queued.rejected is not None:
            pods = self._unschedulable[queued.rejected]
            del pods[queued.pod.key]
            if not pods:
                del self._unschedulable[queued.rejected]
            queued.rejected = None

    def _first(self, place: Place) -> QueuedPod | None:
        heap = self._heaps[place]
        while heap:
            *_, ticket, queued = heap[0]
            if queued.ticket == ticket:
                return queued
            heapq.heappop(heap)
        return None

    def _take(self, queued: QueuedPod, now: float) -> QueuedPod:
        self._remove(queued)
        queued.rejected_by = set()
        if queued.first_attempt is None:
            queued.first_attempt = now
        return queued

    def _sort_key(self, queued: QueuedPod) -> SortKey:
        """The sort key. Profiles share the QueueSort plugin; a pod for which it fails is last."""
        try:
            return self._profile(queued).sort_key(queued.pod, queued.since)
        except PluginFault as fault:
            self._emit(ReportEvent(queued.pod, "Warning", "PluginFailed", str(fault)))
            return _LAST

    def _profile(self, queued: QueuedPod) -> Profile:
        return self._profiles[queued.pod.pod.spec.scheduler_name]

    def _worth_trying(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        rejected = queued.rejected
        if rejected is None or rejected.any_event:
            return True
        return any(i.helps(p.pod, event) for i in self._interests(rejected, event) for p in queued.pods())

    def _interests(self, rejected: _Rejected, event: ClusterEvent) -> list[Interest]:
        """The interests of the plugins that rejected pods in such an event."""
        interests = self._profiles[rejected.profile].interests
        return [i for name in rejected.plugins for i in interests.get(name, ()) if i.matches(event)]

    def _requeue(self, queued: QueuedPod, now: float) -> None:
        if not self._backing_off(queued, now):
            self._enter(queued, Place.ACTIVE)
        else:
            self._enter(queued, Place.BACKOFF if queued.rejected_by else Place.ERRORS)

    def _enter(self, queued: QueuedPod, place: Place) -> None:
        """Move a pod to a place if the PreEnqueue plugins agree; else it stays gated."""
        self._enter_after(queued, queued.pods(), place)

    def _enter_after(self, queued: QueuedPod, members: Iterable[QueuedPod], place: Place) -> None:
        """The same, with the PreEnqueue plugins called for some pods only; the others have passed."""
        status = SUCCESS
        for waiting in members:
            status = self._profile(waiting).pre_enqueue(waiting.pod)
            if not status.ok:
                break
        queued.gated = not status.ok
        if queued.gated:
            queued.behind_gate = place
            if not status.rejected and status.code is not Code.PENDING:
                self._emit(Fail(waiting.pod, status.message, SCHEDULER_ERROR))
            queued.rejected_by.add(status.plugin)
            self._rest(queued)
        else:
            queued.place = place
            self._push(queued)

    def _backoff_end(self, queued: QueuedPod) -> float:
        count = queued.errors or queued.rejections
        if not count:
            return 0.0
        end = queued.since + backoff(count, self._initial, queued.longest(self._longest))
        return float(math.floor(end)) if self._early else end

    def _backing_off(self, queued: QueuedPod, now: float) -> bool:
        end = self._backoff_end(queued)
        return end > 0 and end >= (math.floor(now) if self._early else now)


def _part_of(queued: QueuedPod) -> str:
    match queued.place:
        case Place.ACTIVE:
            return "active"
        case Place.BACKOFF | Place.ERRORS:
            return "backoff"
        case Place.UNSCHEDULABLE:
            return "gated" if queued.gated else "unschedulable"


def backoff(count: int, initial: float, longest: float) -> float:
    """Seconds to wait after `count` rejections: doubled each time."""
    return min(initial * 2.0 ** min(count - 1, 1000), longest) if count else 0.0


def _changed(old: Pod, new: Pod) -> bool:
    """Whether more than the pod's status differs."""
    return old.spec != new.spec or old.metadata.annotations != new.metadata.annotations
