"""Objects by resource, one global resourceVersion, and a bounded history of events.

An object is stored as the bytes of its JSON without the leading kind and apiVersion (the `tail`), encoded once per
write; the same bytes are used for reads and for all watchers. In addition, only the values for selectors are indexed.
The store has no rules for kinds: it receives complete objects. durable.py, which persists them, is one of its
listeners.

Kubernetes: the etcd3 store and the watch cache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import orjson

HISTORY_EVENTS = 20_000
HISTORY_BYTES = 96 * 1024 * 1024
FIRST_REVISION = 1000  # so that small numbers are always "compacted", as on a server with a history

OBJECT_LIMIT = 1536 * 1024  # maximum size of an object in bytes, as in etcd

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class TooLarge(Exception):
    """The object is over OBJECT_LIMIT."""


class Entry:
    """One version of one object; never changed after it was stored."""

    __slots__ = ("fields", "key", "labels", "name", "namespace", "rv", "tail", "uid")

    def __init__(
        self,
        namespace: str,
        name: str,
        uid: str,
        rv: int,
        tail: bytes,
        labels: dict[str, str],
        fields: dict[str, str],
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.key = f"{namespace}/{name}" if namespace else name
        self.uid = uid
        self.rv = rv
        self.tail = tail
        self.labels = labels
        self.fields = fields

    def load(self) -> dict[str, Any]:
        """A new copy of the object, without kind and apiVersion."""
        obj: dict[str, Any] = orjson.loads(b"{" + self.tail)
        return obj


class Event:
    """One change. `entry` is the object after it (for DELETED its last state, with the revision of the deletion)."""

    __slots__ = ("encoded", "entry", "prev", "rv", "type")

    def __init__(self, type_: str, entry: Entry, prev: Entry | None) -> None:
        self.type = type_
        self.entry = entry
        self.prev = prev
        self.rv = entry.rv
        self.encoded: dict[Any, bytes] = {}  # by watch form; encoded for the first watcher


# Observers are called in the middle of a write: they may queue work, but must not write themselves.
Observer = Callable[[Event], None]


class Collection:
    """All objects of one resource."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []  # sorted: the order of lists and pages
        self.history: deque[Event] = deque()
        self.history_bytes = 0
        self.floor = store.revision  # watches can start from this revision or later
        self.observers: list[Observer] = []

    def get(self, namespace: str, name: str) -> Entry | None:
        return self.entries.get(f"{namespace}/{name}" if namespace else name)

    def select(self, namespace: str = "") -> Iterator[Entry]:
        """Entries in order of their keys."""
        entries = self.entries
        if not namespace:
            return (entries[key] for key in self.keys)
        start = bisect_left(self.keys, namespace + "/")
        stop = bisect_left(self.keys, namespace + "0")  # "0" follows "/"
        return (entries[key] for key in self.keys[start:stop])

    def at(self, revision: int) -> list[Entry]:
        """The entries at a revision within the history."""
        state: dict[str, Entry | None] = {}
        for event in reversed(self.history):
            if event.rv <= revision:
                break
            state[event.entry.key] = event.prev
        if not state:
            return list(self.select())
        merged = dict(self.entries)
        for key, entry in state.items():
            if entry is None:
                merged.pop(key, None)
            else:
                merged[key] = entry
        return [merged[key] for key in sorted(merged)]

    def since(self, revision: int) -> list[Event]:
        """Events after a revision; the caller has checked it against `floor`."""
        history = self.history
        if not history or history[-1].rv <= revision:
            return []
        if history[0].rv > revision:
            return list(history)
        rows = list(history)
        return rows[bisect_right(rows, revision, key=lambda event: event.rv) :]

    def publish(self, event: Event) -> None:
        self.remember(event)
        for observer in self.observers:
            observer(event)

    def remember(self, event: Event) -> None:
        """Add to the history, and drop its oldest events."""
        self.history.append(event)
        self.history_bytes += len(event.entry.tail)
        while len(self.history) > HISTORY_EVENTS or self.history_bytes > HISTORY_BYTES:
            self.forget_oldest()

    def forget_oldest(self) -> None:
        oldest = self.history.popleft()
        self.history_bytes -= len(oldest.entry.tail)
        self.floor = oldest.rv


class Store:
    """The collections and their common revision."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self.collections: dict[str, Collection] = {}
        self.listeners: list[Callable[[Collection, Event], None]] = []  # called with every write, after the watchers

    def collection(self, name: str) -> Collection:
        """The collection of a resource such as `pods` or `jobs.batch.volcano.sh`; created if it is new."""
        found = self.collections.get(name)
        if found is None:
            found = self.collections[name] = Collection(self, name)
        return found

    def drop(self, name: str) -> None:
        """Drop a collection; its objects are deleted first, so that they are not restored."""
        collection = self.collections.get(name)
        if collection is None:
            return
        for entry in list(collection.select()):
            self.commit(collection, DELETED, entry.load(), entry.fields)
        del self.collections[name]

    def next_revision(self) -> int:
        return self.revision + 1

    def commit(self, collection: Collection, type_: str, obj: dict[str, Any], fields: dict[str, str]) -> Entry:
        """Write an object (without kind and apiVersion): give it the next revision, encode it, notify the watchers."""
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self.revision + 1)
        tail = orjson.dumps(obj)[1:]
        if len(tail) > OBJECT_LIMIT:
            raise TooLarge
        self.revision += 1
        entry = Entry(
            metadata.get("namespace", ""),
            metadata["name"],
            metadata.get("uid", ""),
            self.revision,
            tail,
            metadata.get("labels") or {},
            fields,
        )
        self.place(collection, type_, entry)
        return entry

    def place(self, collection: Collection, type_: str, entry: Entry) -> None:
        """Store a complete entry, and notify the watchers."""
        key = entry.key
        prev = collection.entries.get(key)
        if type_ == DELETED:
            collection.entries.pop(key, None)
            at = bisect_left(collection.keys, key)
            if at < len(collection.keys) and collection.keys[at] == key:
                collection.keys.pop(at)
        else:
            if prev is None:
                insort(collection.keys, key)
            collection.entries[key] = entry
        event = Event(type_, entry, prev)
        collection.publish(event)
        for listener in self.listeners:
            listener(collection, event)
