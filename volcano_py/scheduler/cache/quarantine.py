"""Objects that cannot be used: they do not decode, or the model refuses them. The rest is scheduled.

Each gets one Warning Event that says why and what to do, once per reason, and counts in a metric until it is
corrected or deleted.
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
    """`write(event)` hands an Event to the dispatcher and answers whether it was taken."""

    def __init__(self, write: Callable[[Event], bool]) -> None:
        self._write = write
        self._entries: dict[tuple[str, str], _Entry] = {}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._entries

    def put(self, kind: str, namespace: str, name: str, uid: str, why: str) -> None:
        """The object cannot be used."""
        text = f"volcano-py cannot use this {kind} and ignores it: {why}"
        event = Event(kind, namespace, name, uid, "Warning", REASON, text[:1000])
        key = (kind, f"{namespace}/{name}" if namespace else name)
        known = self._entries.get(key)
        if known is None or known.event != event:
            self._entries[key] = _Entry(event, self._write(event))

    def release(self, kind: str, key: str) -> None:
        """The object is fine again, or gone."""
        if self._entries:
            self._entries.pop((kind, key), None)

    def report_again(self) -> None:
        """Report what has not been reported yet, after leadership was won."""
        for entry in self._entries.values():
            if not entry.reported:
                entry.reported = self._write(entry.event)

    def not_written(self, event: Event) -> None:
        """The dispatcher could not write this one after all."""
        for entry in self._entries.values():
            if entry.event == event:
                entry.reported = False

    def counts(self) -> dict[str, int]:
        """How many objects of each kind are quarantined."""
        return dict(Counter(kind for kind, _ in self._entries))

    def reasons(self) -> dict[tuple[str, str], str]:
        """(kind, key) to the text of the Event."""
        return {key: entry.event.message for key, entry in self._entries.items()}
