"""Pending operations: lanes, the order per object, delays. Volcano: the work queues of the scheduler cache.

Lanes in descending urgency, each with a limit of writes in flight, so that none starves:

    0  evictions, and PodGroups becoming Inqueue (their pods are created only then)
    1  binds with their pre-bind steps, and removals of the queue gate
    2  pod conditions, nominations, other statuses
    3  Events

Lanes 0 and 1 alternate. Writes of one object do not overlap and keep their order.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from volcano_py.scheduler.dispatch.pre_bind.barriers import StepWrite
from volcano_py.scheduler.model.jobs.pre_bind import object_of
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    NativeGroupStatus,
    Operation,
    PodGroupStatus,
    QueueStatus,
    RemoveGate,
)

ObjectKey = tuple[str, str, str]
"""Kind, namespace, name. Events have a separate kind: they do not wait for the object's writes."""

LANES = 4
EVENTS = 3
MOST_WITHDRAWN = 10_000
"""Withdrawn items after which the lanes are cleaned."""


@dataclass(eq=False, slots=True)
class Item:
    """One operation in the dispatcher."""

    id: int
    """0: a follow-up of the dispatcher itself; its result is not sent."""
    op: Operation | StepWrite
    key: ObjectKey
    lane: int
    since: float
    not_before: float = 0.0
    attempts: int = 0
    begun: float = 0.0
    unknown: bool = False
    """Whether an earlier attempt may have succeeded."""
    in_flight: bool = False
    gone: bool = False
    """Whether it was withdrawn; its entry in a lane is skipped."""


def object_key(op: Operation | StepWrite) -> ObjectKey:
    """The object whose writes are ordered with this one."""
    match op:
        case PodGroupStatus():
            return "PodGroup", op.namespace, op.name
        case NativeGroupStatus():
            return op.kind, op.namespace, op.name
        case QueueStatus():
            return "Queue", "", op.name
        case Event():
            return f"Event of {op.kind}", op.namespace, op.name
        case StepWrite():
            return object_of(op.step)
        case _:
            return "Pod", op.namespace, op.name


def lane_of(op: Operation | StepWrite) -> int:
    """See the module's docstring."""
    match op:
        case Evict():
            return 0
        case PodGroupStatus():
            return 0 if op.urgent else 2
        case Bind() | RemoveGate() | StepWrite():
            return 1
        case Event():
            return EVENTS
        case _:
            return 2


class WaitingWrites:
    """The queues: `push` adds an item, `take` starts it, `put_back` returns it, `remove` ends it."""

    def __init__(self, max_in_flight: int) -> None:
        self._limit = max_in_flight
        self._caps = (max_in_flight, max_in_flight, max(2, max_in_flight // 2), max(1, max_in_flight // 8))
        self._lanes: tuple[deque[Item], ...] = tuple(deque() for _ in range(LANES))
        self._in_flight = [0] * LANES
        self._delayed: list[tuple[float, int, Item]] = []
        self._serial = 0
        self._turn = 0
        self._evictions_first = True
        self._events = 0
        self._withdrawn = 0
        """Items that are gone and may still be in a lane or delayed."""
        self.objects: dict[ObjectKey, list[Item]] = {}
        """All items, by object, in order; the first may be in flight."""
        self.binds_to: dict[str, set[Item]] = defaultdict(set)
        self.of_job: dict[str, set[Item]] = defaultdict(set)

    def __len__(self) -> int:
        return sum(len(items) for items in self.objects.values())

    @property
    def in_flight(self) -> int:
        """The number of writes in flight."""
        return sum(self._in_flight)

    @property
    def urgent_in_flight(self) -> int:
        """The number of writes in flight that are not Events."""
        return self.in_flight - self._in_flight[EVENTS]

    @property
    def ready(self) -> bool:
        """Whether an item may begin without a delay (once true by mistake after a withdrawal)."""
        return any(self._lanes)

    def events(self) -> int:
        """The number of pending Events."""
        return self._events

    def push(self, item: Item) -> None:
        """Add an item after the others of its object."""
        line = self.objects.setdefault(item.key, [])
        line.append(item)
        self._events += item.lane == EVENTS
        if isinstance(item.op, Bind):
            self.binds_to[item.op.node].add(item)
        if isinstance(item.op, Bind | Evict):
            self.of_job[item.op.group].add(item)
        if len(line) == 1:
            self._offer(item)

    def promote(self, item: Item, lane: int) -> None:
        """Move a waiting item to a more urgent lane, without its delay."""
        if item.in_flight or lane >= item.lane:
            return
        twin = Item(item.id, item.op, item.key, lane, item.since, 0.0, item.attempts, unknown=item.unknown)
        line = self.objects[item.key]
        at = line.index(item)
        item.gone = True
        self._withdrawn += 1
        line[at] = twin
        if at == 0:
            self._offer(twin)

    def put_back(self, item: Item, not_before: float) -> None:
        """Return an item after a failed attempt, before the others of its object."""
        self._in_flight[item.lane] -= 1
        item.in_flight = False
        item.not_before = not_before
        self._offer(item)

    def remove(self, item: Item) -> None:
        """Withdraw a waiting item, or end one in flight."""
        if item.in_flight:
            self._in_flight[item.lane] -= 1
            item.in_flight = False
        else:
            self._withdrawn += 1
        self._events -= item.lane == EVENTS
        item.gone = True
        line = self.objects[item.key]
        first = line[0] is item
        line.remove(item)
        if isinstance(item.op, Bind):
            _discard(self.binds_to, item.op.node, item)
        if isinstance(item.op, Bind | Evict):
            _discard(self.of_job, item.op.group, item)
        if not line:
            del self.objects[item.key]
        elif first:
            self._offer(line[0])
        if self._withdrawn > MOST_WITHDRAWN:
            self._drop_withdrawn()

    def _drop_withdrawn(self) -> None:
        """Remove withdrawn items where they wait: while nothing can be written, no one takes them."""
        self._withdrawn = 0
        for lane in self._lanes:
            kept = [item for item in lane if not item.gone]
            lane.clear()
            lane.extend(kept)
        self._delayed = [entry for entry in self._delayed if not entry[2].gone]
        heapq.heapify(self._delayed)

    def take(self, now: float, limit: int | None = None) -> Iterator[Item]:
        """Items whose write may begin, marked as in flight; at most `limit`."""
        while self._delayed and self._delayed[0][0] <= now:
            item = heapq.heappop(self._delayed)[2]
            if not item.gone:
                self._lanes[item.lane].append(item)
        free = self._limit - self.in_flight
        if limit is not None:
            free = min(free, limit)
        while free > 0:
            found = self._next()
            if found is None:
                return
            item = found
            item.in_flight = True
            item.begun = now
            item.attempts += 1
            self._in_flight[item.lane] += 1
            free -= 1
            yield item

    def due(self) -> float | None:
        """When the next delayed item may begin; None if none is delayed."""
        while self._delayed and self._delayed[0][2].gone:
            heapq.heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def all(self) -> list[Item]:
        """Every item, in flight or waiting."""
        return [item for line in self.objects.values() for item in line]

    def _offer(self, item: Item) -> None:
        if item.not_before > 0:
            self._serial += 1
            heapq.heappush(self._delayed, (item.not_before, self._serial, item))
        else:
            self._lanes[item.lane].append(item)

    def _next(self) -> Item | None:
        # Urgent lanes alternate; after seven of their items one of lane 2 goes first, after fifteen one of
        # lane 3, so that a long sequence of binds does not delay the reports why other pods are pending.
        self._turn = (self._turn + 1) % 16
        order = [0, 1, 2, 3] if self._evictions_first else [1, 0, 2, 3]
        if self._turn == 0:
            order = [3, *order[:3]]
        elif self._turn == 8:
            order = [2, *order[:2], 3]
        else:
            self._evictions_first = not self._evictions_first
        for lane in order:
            if self._in_flight[lane] >= self._caps[lane]:
                continue
            queue = self._lanes[lane]
            while queue:
                item = queue.popleft()
                if not item.gone:
                    return item
        return None


def _discard(index: dict[str, set[Item]], key: str, item: Item) -> None:
    items = index.get(key)
    if items is not None:
        items.discard(item)
        if not items:
            del index[key]
