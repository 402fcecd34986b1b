"""Watches: events that match a selection, encoded once for all watchers of a form, with bookmarks and time limits.

Kubernetes: the watch cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.endpoints.verbs.create import empty
from volcano_py.sandbox.apiserver.endpoints.verbs.read import Selection
from volcano_py.sandbox.apiserver.printers import table
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, MODIFIED, Entry, Event

QUEUE_BYTES = 64 * 1024 * 1024
"""The maximum lag of a client, without the initial state of its watch."""
SLICE_BYTES = 1024 * 1024
"""The approximate amount that is written to a connection at once."""

Encode = Callable[[Resource, str, Entry], bytes]


def object_event(resource: Resource, type_: str, entry: Entry) -> bytes:
    """One line of a watch stream with the unchanged object."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), resource.object_bytes(entry.tail))


class Watcher:
    """One open stream: a queue of encoded lines that its connection reads.

    `connected` returns whether the client is connected, `cut` closes the connection without waiting for it.
    """

    def __init__(
        self,
        resource: Resource,
        chosen: Selection,
        form: Any,
        include: str,
        encode: Encode,
        bookmarks: bool,
        connected: Callable[[], bool],
        cut: Callable[[], None],
    ) -> None:
        self.resource = resource
        self.collection = resource.collection
        self.chosen = chosen
        self.form = (form, resource.api_version, include)
        self.encode = encode
        self.bookmarks = bookmarks
        self.queue: list[bytes] = []
        self.size = 0
        self.most = QUEUE_BYTES
        self.connected = connected
        self.cut = cut
        self.closed = False
        self.ready = asyncio.Event()
        self.everything = chosen.labels is None and chosen.fields is None and not chosen.name
        self.after = 0  # only later revisions are sent
        self.collection.observers.append(self.offer)

    def offer(self, event: Event) -> None:
        """Queue an event of the collection if it concerns this stream."""
        entry = event.entry
        if entry.rv <= self.after:
            return
        chosen = self.chosen
        if chosen.namespace and entry.namespace != chosen.namespace:
            return
        if self.everything:
            self._push(event, event.type, entry)
            return
        if chosen.name and entry.name != chosen.name:
            return
        now = event.type != DELETED and chosen.matches(entry)
        before = event.prev is not None and chosen.matches(event.prev)
        if now:
            self._push(event, MODIFIED if before else ADDED, entry)
        elif before:
            if event.type == DELETED:
                self._push(event, DELETED, entry)
            else:
                assert event.prev is not None
                self._lag(self.encode(self.resource, DELETED, at_revision(event.prev, event.rv)))

    def _push(self, event: Event, type_: str, entry: Entry) -> None:
        key = (self.form, type_)
        line = event.encoded.get(key)
        if line is None:
            line = event.encoded[key] = self.encode(self.resource, type_, entry)
        self._lag(line)

    def _lag(self, line: bytes) -> None:
        """Queue an event; a client that does not read is disconnected, and lists again."""
        self.put(line)
        if self.size > self.most:
            self.queue.clear()
            self.close()
            self.cut()

    def put(self, line: bytes) -> None:
        self.queue.append(line)
        self.size += len(line)
        self.ready.set()

    def began(self) -> None:
        """Mark the queued lines as the initial state: the client may read them slowly."""
        self.most = QUEUE_BYTES + self.size

    def take(self) -> bytes:
        """The next queued lines."""
        if self.size <= SLICE_BYTES:
            lines, self.queue = self.queue, []
        else:
            count = size = 0
            while count < len(self.queue) and size < SLICE_BYTES:
                size += len(self.queue[count])
                count += 1
            lines = self.queue[:count]
            del self.queue[:count]
        data = b"".join(lines) if len(lines) != 1 else lines[0]
        self.size -= len(data)
        if not self.queue:
            self.ready.clear()
        return data

    def bookmark(self, initial_end: bool = False) -> None:
        """Send the client the revision up to which it has received all events."""
        if self.bookmarks and not self.closed:
            self.put(bookmark_line(self.resource, self.form[0], self.collection.store.revision, initial_end))

    def fail(self, error: errors.StatusError) -> None:
        """End the stream with an ERROR event."""
        self.put(orjson.dumps({"type": "ERROR", "object": error.body}) + b"\n")
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.collection.observers.remove(self.offer)
            self.ready.set()


def at_revision(entry: Entry, revision: int) -> Entry:
    """An older state of an object, with the revision at which it left a selection."""
    obj = entry.load()
    obj["metadata"]["resourceVersion"] = str(revision)
    return Entry(
        entry.namespace,
        entry.name,
        entry.uid,
        revision,
        orjson.dumps(obj)[1:],
        entry.labels,
        entry.fields,
    )


def bookmark_line(resource: Resource, form: Any, revision: int, initial_end: bool) -> bytes:
    """A BOOKMARK event; the one that ends the initial events has an annotation."""
    meta: dict[str, Any] = {"resourceVersion": str(revision)}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj: dict[str, Any]
    as_ = getattr(form, "as_", "")
    if as_ == "Table":
        hollow = {"kind": resource.kind, "apiVersion": resource.api_version, **empty(resource)}
        hollow["metadata"] = {"name": "", "creationTimestamp": None, **meta}
        obj = table.table(form, resource, [hollow], {"resourceVersion": str(revision)}, "", columns=False)
        obj["rows"][0]["object"]["metadata"] = meta
    elif as_:
        obj = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": meta,
        }
    elif resource.custom is not None:
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    else:
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, **empty(resource)}
        obj["metadata"] = meta
    return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"
