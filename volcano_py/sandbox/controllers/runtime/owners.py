"""The graph of ownerReferences for the garbage collector and the workloads' controllers.

Kubernetes: the garbage collector's graph builder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import DELETED, Collection, Entry, Event, Store

Object = dict[str, Any]
Node = tuple[str, str]  # collection, key
# called with a write, and with the previous ownerReferences of the object
Listener = Callable[[Collection, Event, list[Object]], None]

_REFERENCES = b'"ownerReferences":['


class Owners:
    """Updated with every write. `listeners` are called after the update."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.alive: dict[str, Node] = {}  # by uid
        self.references: dict[Node, list[Object]] = {}
        self.dependents: dict[str, set[Node]] = {}  # by the owner's uid
        self.listeners: list[Listener] = []

    def start(self) -> None:
        for collection in list(self.store.collections.values()):
            for entry in collection.select():
                self._note(collection, entry)
        self.store.listeners.append(self._observe)

    def stop(self) -> None:
        if self._observe in self.store.listeners:
            self.store.listeners.remove(self._observe)

    def entry(self, node: Node) -> Entry | None:
        """The object with a collection and key, if it exists."""
        collection = self.store.collections.get(node[0])
        return collection.entries.get(node[1]) if collection is not None else None

    def owned(self, uid: str, collection: str) -> list[Entry]:
        """The dependents of an owner in one collection, in order of their keys."""
        keys = sorted(key for name, key in self.dependents.get(uid, ()) if name == collection)
        entries = self.store.collections[collection].entries
        return [entries[key] for key in keys if key in entries]

    def controller(self, node: Node) -> Object | None:
        """The reference to the owner that manages the object."""
        return controller_of(self.references.get(node, []))

    def _observe(self, collection: Collection, event: Event) -> None:
        entry = event.entry
        node = (collection.name, entry.key)
        before = self.references.get(node, [])
        if event.type == DELETED:
            if self.alive.get(entry.uid) == node:
                del self.alive[entry.uid]
            self._unlink(node)
        else:
            self._note(collection, entry)
        for listener in self.listeners:
            listener(collection, event, before)

    def _note(self, collection: Collection, entry: Entry) -> None:
        node = (collection.name, entry.key)
        self.alive[entry.uid] = node
        has = _REFERENCES in entry.tail
        if not has and node not in self.references:
            return
        rows = (entry.load()["metadata"].get("ownerReferences") or []) if has else []
        if rows == self.references.get(node):
            return
        self._unlink(node)
        if rows:
            self.references[node] = rows
            for row in rows:
                self.dependents.setdefault(row.get("uid", ""), set()).add(node)

    def _unlink(self, node: Node) -> None:
        for row in self.references.pop(node, []):
            uid = row.get("uid", "")
            held = self.dependents.get(uid)
            if held is not None:
                held.discard(node)
                if not held:
                    del self.dependents[uid]


def controller_of(references: list[Object]) -> Object | None:
    """The reference to the owner that manages the object."""
    for row in references:
        if row.get("controller"):
            return row
    return None


def resource_of(api: Api, collection: str) -> Resource | None:
    """A served resource whose objects are in a collection."""
    plural, _, group = collection.partition(".")
    return api.registry.find(group, plural)
