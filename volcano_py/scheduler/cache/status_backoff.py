"""Back-off of rejected status writes, per object and verb. Volcano: the rate limiter of its error queue.

The API server would reject the same status or Event again: without a back-off, one pod keeps the scheduler, the API
server and the log busy. A write that was rejected is decided again after a pause, which doubles each time. Meanwhile a
newer one of the same object is held here, and written when the pause is over.

A conflict holds nothing: usually the watch returns the newer object, from which the status is decided again. If it does
not, the status is decided again after the pause, as the server may send a 409 although the object has not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    NativeGroupStatus,
    Nomination,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)

FIRST_PAUSE, MAX_PAUSE = 1.0, 30.0
"""Seconds before an object is written again after the API server rejected a write; doubles each time."""
KINDS: dict[type[Operation], str] = {
    PodCondition: "Pod",
    Nomination: "Pod",
    PodGroupStatus: "PodGroup",
    NativeGroupStatus: "",
    QueueStatus: "Queue",
    Event: "",
}
"""The status writes, and the kind of their object; an Event and the status of a native group contain it."""

Key = tuple[type[Operation], str, str]


class _Entry:
    """What is known of one verb on one object since its last success."""

    def __init__(self) -> None:
        self.failures = 0
        self.timer: asyncio.TimerHandle | None = None
        self.rejected: Operation | None = None
        """The operation that is decided again when the pause is over; None: there is no pause."""
        self.decided_from: set[str] = set()
        """The versions from which those were decided that were rejected since the last pause; "": decide again whatever
        the version is."""
        self.held: Operation | None = None
        self.holds = False


class StatusBackoff:
    """`emit(operations)` writes held statuses, `retry(operation)` undoes a rejected one, so that it is decided again;
    `version(kind, key)` is the resourceVersion that the watch last returned;
    None: there is no such object."""

    def __init__(
        self,
        emit: Callable[[list[Operation]], None],
        retry: Callable[[Operation], None],
        version: Callable[[str, str], str | None],
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._emit = emit
        self._retry = retry
        self._version = version
        self._first_pause = first_pause
        self._entries: dict[Key, _Entry] = {}

    def passing(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """Those that may be written now. The others are written when their pause is over, the newest of each object."""
        if not self._entries:
            return operations
        passing = []
        for op in operations:
            entry = self._entries.get(_key(op))
            if entry is not None and entry.holds:
                entry.held = op
            else:
                passing.append(op)
            if (
                isinstance(op, Bind | Evict)
                and (older := self._entries.get((PodCondition, "Pod", _name(op)))) is not None
            ):
                # Its condition would be wrong from now on.
                older.held = None
        return passing

    def rejected(self, op: Operation, conflict: bool = False) -> None:
        """A write was rejected."""
        entry = self._entries.setdefault(_key(op), _Entry())
        entry.failures += 1
        entry.rejected = op
        entry.decided_from.add(getattr(op, "resource_version", "") if conflict else "")
        entry.holds = not conflict
        if entry.timer is not None:
            entry.timer.cancel()
        pause = min(MAX_PAUSE, self._first_pause * 2 ** min(entry.failures - 1, 10))
        entry.timer = asyncio.get_running_loop().call_later(pause, self._due, _key(op))

    def succeeded(self, op: Operation) -> None:
        """A write has succeeded: what was rejected before no longer counts."""
        if self._entries:
            self._drop(_key(op))

    def deleted(self, kind: str, key: str) -> None:
        """An object is gone."""
        for verb in KINDS if self._entries else ():
            self._drop((verb, kind, key))

    def close(self) -> None:
        """Cancel the timers."""
        for key in list(self._entries):
            self._drop(key)

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.timer is not None:
            entry.timer.cancel()

    def _due(self, key: Key) -> None:
        entry = self._entries[key]
        op, held, decided_from = entry.rejected, entry.held, entry.decided_from
        entry.rejected, entry.held, entry.holds, entry.timer, entry.decided_from = None, None, False, None, set()
        newest = self._version(*key[1:])
        if newest is None:
            # Deleted before the rejection. Its failures no longer count, and `deleted` is not called again.
            self._drop(key)
        if held is not None:
            self._emit([held])
        elif op is not None and ("" in decided_from or newest in decided_from):
            self._retry(op)


def _key(op: Operation) -> Key:
    kind = op.kind if isinstance(op, Event | NativeGroupStatus) else KINDS.get(type(op), "")
    return type(op), kind, _name(op)


def _name(op: Operation) -> str:
    namespace, name = getattr(op, "namespace", ""), op.name
    return f"{namespace}/{name}" if namespace else name
