"""A copy of a foreign server's objects with the interface of the sandbox's own API, fed by informers.

A write changes the copy at once and is sent later. Until its response arrives, events of the same object are held back,
because they are older than the write. The response then replaces the copy, unless a held event is newer.

Kubernetes: client-go's informers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from volcano_py.api.resource_types import ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer
from volcano_py.sandbox.apiserver.apiextensions.definitions import CRDS, Definitions
from volcano_py.sandbox.apiserver.registry import builtin
from volcano_py.sandbox.apiserver.registry.api import Api, selector_fields
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, MODIFIED, Collection, Entry, Event, Store
from volcano_py.sandbox.foreign.writes import Writes

LOG = logging.getLogger(__name__)
Object = dict[str, Any]

REMEMBERED = 10_000
"""Number of deleted objects that are kept, so that a late response does not restore one."""
SYNC_SECONDS = 30.0


class _WithoutHistory(Collection):
    """A store without watchers."""

    def remember(self, event: Event) -> None:
        """Do nothing."""


class _Copies(Store):
    def collection(self, name: str) -> Collection:
        if name not in self.collections:
            self.collections[name] = _WithoutHistory(self, name)
        return self.collections[name]


class Mirror(Api):
    """The copy. `accepts` selects the objects that are copied."""

    def __init__(
        self, client: Client, accepts: Callable[[Resource, Object], bool] = lambda resource, obj: True
    ) -> None:
        super().__init__(store=_Copies())
        self.client = client
        self.accepts = accepts
        self.writes = Writes(client, self.arrived)
        self._held: dict[tuple[str, str], Object] = {}
        self._gone: deque[str] = deque(maxlen=REMEMBERED)
        self._informers: dict[str, Informer[Object]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        builtin.install(self.registry, self.store)
        self._definitions = Definitions(self)
        self.extensions["definitions"] = self._definitions
        observers = self.store.collections[CRDS].observers
        observers[observers.index(self._definitions.changed)] = self._definition_changed

    async def follow(self, resource: Resource, **selectors: str) -> None:
        """Copy a kind, and return when it is complete. A kind that the server does not have is empty."""
        informer = self._start(resource, **selectors)
        if informer is not None:
            await asyncio.wait_for(informer.synced.wait(), SYNC_SECONDS)

    async def follow_all(self, except_for: Iterable[str]) -> None:
        """Copy every kind that can be listed and watched, including those that are defined later."""
        left_out = frozenset(except_for)

        def wanted() -> list[Resource]:
            rows = [row for row in self.registry if {"list", "watch"} <= set(row.verbs)]
            return [row for row in rows if row.collection.name not in left_out]

        def start_new() -> None:
            for row in wanted():
                self._start(row)

        await asyncio.gather(*(self.follow(row) for row in wanted()))
        start_new()
        self.registry.changed.append(start_new)

    def stop(self) -> None:
        self.registry.changed.clear()
        for task in self._tasks:
            task.cancel()
        self.writes.stop()

    def write(self, resource: Resource, type_: str, obj: Object) -> Entry:
        """Send a change. A deletion changes the copy after the server has executed it."""
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        before = resource.collection.get(meta.get("namespace", ""), meta["name"])
        self.writes.change(resource, type_, before.load() if before is not None else None, obj)
        if type_ == DELETED and before is not None:
            return before
        return self._place(resource, obj)

    def arrived(self, resource: Resource, obj: Object | None, key: str) -> None:
        """Handle the server's response to the last write of an object (None: an error), or a state that was read."""
        held = self._held.pop((resource.collection.name, key), None)
        for one in (obj, held):
            if one is not None:
                self._copy(resource, one)

    # --- from the server ---------------------------------------------------------------------------------------------

    def _start(self, resource: Resource, **selectors: str) -> Informer[Object] | None:
        name = resource.collection.name
        if name in self._informers:
            return None
        rt = ResourceType(resource.group, resource.version, resource.plural, resource.kind, resource.namespaced)
        informer: Informer[Object] = Informer(self.client, rt, dict, optional=True, **selectors)  # type: ignore[arg-type]
        informer.on(
            add=lambda obj: self._event(resource, obj),
            update=lambda old, new: self._event(resource, new),
            delete=lambda obj: self._deleted(resource, obj),
        )
        self._informers[name] = informer
        self._tasks.append(asyncio.create_task(informer.run()))
        return informer

    def _event(self, resource: Resource, obj: Object) -> None:
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        if self.writes.pending(resource, key):
            self._held[resource.collection.name, key] = obj
        else:
            self._copy(resource, obj)

    def _deleted(self, resource: Resource, obj: Object) -> None:
        meta = obj["metadata"]
        self._gone.append(meta["uid"])
        entry = resource.collection.get(meta.get("namespace", ""), meta["name"])
        if entry is None or entry.uid != meta["uid"]:
            return
        self.writes.forget(resource, entry.key)
        self._held.pop((resource.collection.name, entry.key), None)
        self.store.place(resource.collection, DELETED, entry)

    def _copy(self, resource: Resource, obj: Object) -> None:
        meta = obj["metadata"]
        if meta["uid"] in self._gone or not self.accepts(resource, obj):
            return
        entry = resource.collection.get(meta.get("namespace", ""), meta["name"])
        if entry is not None and entry.uid == meta["uid"] and entry.rv >= int(meta["resourceVersion"]):
            return
        bare = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
        bare["metadata"] = {key: value for key, value in meta.items() if key != "managedFields"}
        self._place(resource, bare)

    def _place(self, resource: Resource, obj: Object) -> Entry:
        meta = obj["metadata"]
        resource.strategy.default(obj)
        entry = Entry(
            meta.get("namespace", ""),
            meta["name"],
            meta.get("uid", ""),
            int(meta.get("resourceVersion") or 0),
            orjson.dumps(obj)[1:],
            meta.get("labels") or {},
            selector_fields(resource, obj),
        )
        self.store.place(resource.collection, MODIFIED if entry.key in resource.collection.entries else ADDED, entry)
        return entry

    def _definition_changed(self, event: Event) -> None:
        """Serve a kind while its definition exists, as the foreign server does."""
        definition = event.entry.load()
        rows = (definition.get("status") or {}).get("conditions") or ()
        if event.type == DELETED:
            self._definitions.withdraw(event.entry.name)
        elif any(row["type"] == "Established" and row["status"] == "True" for row in rows):
            before = event.prev.load()["spec"] if event.prev is not None else None
            if event.entry.name not in self._definitions.served or before != definition["spec"]:
                self._definitions.serve(definition)
