"""The objects that a controller's object manages: those it creates, adopts by its selector, and releases.

Kubernetes: ControllerRefManager. It searches for orphans only when the object is new or a matching orphan appears.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import selectors
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.apimachinery.selectors import Match
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, Collection, Entry, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.owners import Owners

Object = dict[str, Any]


def controller_reference(obj: Object) -> Object:
    """The ownerReference of the objects that an object creates."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Adoption:
    """The selectors of all objects of one collection, and the objects that they match in another."""

    def __init__(self, dependents: Collection, owners: Owners, client: Client) -> None:
        self.dependents = dependents
        self.owners = owners
        self.client = client
        self.selectors: dict[str, dict[str, Match]] = {}  # by namespace and key
        self.due: set[str] = set()  # those that must search for orphans

    def owner_changed(self, event: Event) -> Iterable[str]:
        """The keys of a changed object of the controller's own kind."""
        self.note(event)
        return (event.entry.key,)

    def note(self, event: Event) -> None:
        """Keep the selectors."""
        entry = event.entry
        known = self.selectors.setdefault(entry.namespace, {})
        if event.type == DELETED:
            known.pop(entry.key, None)
            self.due.discard(entry.key)
            if not known:
                del self.selectors[entry.namespace]
        elif event.type == ADDED or entry.key not in known:
            match = selectors.from_label_selector(entry.load()["spec"].get("selector"))
            if match is not None:
                known[entry.key] = match
                self.due.add(entry.key)

    def dependent_changed(self, event: Event) -> Iterable[str]:
        """The objects that would adopt a changed object without a controller."""
        entry = event.entry
        rows = self.selectors.get(entry.namespace)
        if not rows or event.type == DELETED or b'"controller":true' in entry.tail:
            return
        for key, match in rows.items():
            if match(entry.labels):
                self.due.add(key)
                yield key

    async def claim(self, owner: Object) -> list[Entry]:
        """The objects that an object manages, after adoption and release."""
        meta = owner["metadata"]
        key, uid = f"{meta['namespace']}/{meta['name']}", meta["uid"]
        match = self.selectors.get(meta["namespace"], {}).get(key)
        kept = []
        for entry in self.owners.owned(uid, self.dependents.name):
            row = self.owners.controller((self.dependents.name, entry.key))
            if row is None or row["uid"] != uid:
                continue
            if match is None or match(entry.labels):
                kept.append(entry)
            elif not meta.get("deletionTimestamp"):
                await self._release(entry, uid)
        if key in self.due and match is not None and not meta.get("deletionTimestamp"):
            self.due.discard(key)
            for entry in list(self.dependents.select(meta["namespace"])):
                orphan = self.owners.controller((self.dependents.name, entry.key)) is None
                if orphan and match(entry.labels) and b'"deletionTimestamp":' not in entry.tail:
                    kept.extend(await self._adopt(owner, entry))
        return kept

    async def _adopt(self, owner: Object, entry: Entry) -> list[Entry]:
        def change(obj: Object) -> None:
            obj["metadata"].setdefault("ownerReferences", []).append(controller_reference(owner))

        if not await self._change(entry, change):
            return []
        found = self.dependents.entries.get(entry.key)
        return [found] if found is not None else []

    async def _release(self, entry: Entry, uid: str) -> None:
        def change(obj: Object) -> None:
            rows = [row for row in obj["metadata"].get("ownerReferences") or [] if row.get("uid") != uid]
            obj["metadata"]["ownerReferences"] = rows

        await self._change(entry, change)

    async def _change(self, entry: Entry, change: Any) -> bool:
        try:
            await self.client.update(self.dependents.name, entry.key, change, uid=entry.uid)
        except StatusError as error:
            if error.code in (404, 409):
                return False
            raise
        return True
