"""Invalid objects: they cannot be decoded, or the model rejects them. All others are scheduled. Volcano logs them.

Each gets one Warning Event per reason, with the remedy, and is counted in a metric until it is corrected or deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from volcano_py.scheduler.model.plan import Event

REASON = "Quarantined"


@dataclass
class _Entry:
    event: Event
    reported: bool = False


class Quarantine:
    """`write(event)` emits an Event, and returns whether this replica may write."""

    def __init__(self, write: Callable[[Event], bool]) -> None:
        self._write = write
        self._entries: dict[tuple[str, str], _Entry] = {}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._entries

    def put(self, kind: str, namespace: str, name: str, uid: str, why: str) -> None:
        """Quarantine an invalid object."""
        text = f"volcano-py cannot use this {kind} and ignores it: {why}"
        event = Event(kind, namespace, name, uid, "Warning", REASON, text[:1000])
        key = (kind, f"{namespace}/{name}" if namespace else name)
        known = self._entries.get(key)
        if known is None or known.event != event:
            self._entries[key] = _Entry(event, self._write(event))

    def release(self, kind: str, key: str) -> None:
        """Release an object that is valid again, or deleted."""
        if self._entries:
            self._entries.pop((kind, key), None)

    def report_again(self) -> None:
        """Report entries that were not reported yet, after this replica has become the leader."""
        for entry in self._entries.values():
            if not entry.reported:
                entry.reported = self._write(entry.event)

    def not_written(self, event: Event) -> None:
        """Record that the dispatcher has not written this Event."""
        for entry in self._entries.values():
            if entry.event == event:
                entry.reported = False

    def counts(self) -> dict[str, int]:
        """The number of quarantined objects by kind."""
        return dict(Counter(kind for kind, _ in self._entries))

    def reasons(self) -> dict[tuple[str, str], str]:
        """(kind, key) to the text of the Event."""
        return {key: entry.event.message for key, entry in self._entries.items()}
