"""Garbage collection by ownerReferences: background, foreground and orphan propagation.

Kubernetes: the garbage collector's two workers, attempt-to-delete and attempt-to-orphan.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.endpoints.verbs import delete as deletion
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import DELETED, MODIFIED, Collection, Entry, Event
from volcano_py.sandbox.controllers.runtime.client import MANAGER, Client
from volcano_py.sandbox.controllers.runtime.owners import Node, Owners, resource_of
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]
Item = tuple[str, Node]  # "dependent": its owner is deleted or terminates; "owner": waits for its dependents


AGAIN = 1.0
"""Seconds until an object whose owner is not in the copy yet is processed again."""


def controller(api: Api, owners: Owners) -> Controller:
    collector = GarbageCollector(api, owners)
    return Controller("generic-garbage-collector", collector.sync, everything=collector.concerns)


class GarbageCollector:
    """Deletes dependents of deleted owners."""

    def __init__(self, api: Api, owners: Owners) -> None:
        self.api = api
        self.owners = owners
        self.client = Client(api, "generic-garbage-collector")

    def concerns(self, collection: Collection, event: Event, before: list[Object]) -> Iterable[Item]:
        """Queue the effects of a change; `before`: the object's previous ownerReferences."""
        entry = event.entry
        node = (collection.name, entry.key)
        now = self.owners.references.get(node, [])
        if event.type == DELETED:
            for dependent in self.owners.dependents.get(entry.uid, ()):
                yield "dependent", dependent
        elif any(row.get("uid", "") not in self.owners.alive for row in now):
            yield "dependent", node
        if before is not now:
            for row in before:
                holder = self.owners.alive.get(row.get("uid", ""))
                if holder is not None:
                    yield "owner", holder
        if event.type != DELETED and b'"deletionTimestamp":' in entry.tail and b'"finalizers":[' in entry.tail:
            yield "owner", node

    async def sync(self, item: Any) -> float | None:
        what, node = item
        resource, entry = resource_of(self.api, node[0]), self.owners.entry(node)
        if resource is None or entry is None:
            return None
        if what == "dependent":
            return await self._dependent(resource, entry, node)
        await self._owner(resource, entry, node)
        return None

    async def _dependent(self, resource: Resource, entry: Entry, node: Node) -> float | None:
        """Delete an object without existing owners; else remove its references to deleted ones."""
        obj = entry.load()
        meta = obj["metadata"]
        references = meta.get("ownerReferences") or []
        if not references:
            return None
        solid: list[Object] = []
        waiting: list[Object] = []
        for reference in references:
            holder = self.owners.entry(self.owners.alive.get(reference.get("uid", ""), ("", "")))
            if holder is None and await self.client.exists(reference, entry.namespace):
                return AGAIN
            if holder is None or (holder.namespace and holder.namespace != entry.namespace):
                continue
            (waiting if _waits(holder) else solid).append(reference)
        if solid:
            if len(solid) < len(references):
                meta["ownerReferences"] = solid
                self._write(resource, entry, obj)
            return None
        if meta.get("deletionTimestamp"):
            return None
        finalizers = meta.get("finalizers") or []
        policy = "Background"
        if waiting and self.owners.dependents.get(entry.uid):
            policy = "Foreground"
            if any(_waits(child) for _, child in self._below(entry)):
                # owner and dependent wait for each other: this breaks the cycle
                meta["ownerReferences"] = [
                    {**row, "blockOwnerDeletion": False} if row.get("blockOwnerDeletion") else row for row in references
                ]
                entry = self._write(resource, entry, obj)
        elif deletion.ORPHAN in finalizers:
            policy = "Orphan"
        elif deletion.FOREGROUND in finalizers:
            policy = "Foreground"
        await self.client.delete(node[0], entry, policy)
        return None

    async def _owner(self, resource: Resource, entry: Entry, node: Node) -> None:
        """Process a terminating object with a finalizer of the collector: orphan or delete its dependents."""
        meta = entry.load()["metadata"]
        finalizers = meta.get("finalizers") or []
        if not meta.get("deletionTimestamp"):
            return
        if deletion.ORPHAN in finalizers:
            for child_resource, child in self._below(entry):
                obj = child.load()
                kept = [row for row in obj["metadata"]["ownerReferences"] if row.get("uid") != entry.uid]
                obj["metadata"]["ownerReferences"] = kept
                if not kept:
                    del obj["metadata"]["ownerReferences"]
                self._write(child_resource, child, obj)
            self._release(resource, node, deletion.ORPHAN)
        elif deletion.FOREGROUND in finalizers:
            blocked = False
            for child_resource, child in self._below(entry):
                rows = self.owners.references.get((child_resource.collection.name, child.key), [])
                blocked = blocked or any(row.get("blockOwnerDeletion") for row in rows if row.get("uid") == entry.uid)
                if b'"deletionTimestamp":' not in child.tail:
                    await self.sync(("dependent", (child_resource.collection.name, child.key)))
            if not blocked:
                self._release(resource, node, deletion.FOREGROUND)

    def _below(self, entry: Entry) -> list[tuple[Resource, Entry]]:
        rows = []
        for node in sorted(self.owners.dependents.get(entry.uid, ())):
            resource, child = resource_of(self.api, node[0]), self.owners.entry(node)
            if resource is not None and child is not None:
                rows.append((resource, child))
        return rows

    def _write(self, resource: Resource, entry: Entry, obj: Object) -> Entry:
        """Change ownerReferences; removed fields no longer have a manager."""
        managed.update(
            resource.type,
            entry.load(),
            obj,
            manager=MANAGER,
            api_version=resource.api_version,
            subresource="",
            time=metadata.now(),
            created=False,
        )
        return self.api.write(resource, MODIFIED, obj)

    def _release(self, resource: Resource, node: Node, finalizer: str) -> None:
        """Remove a finalizer; without any finalizer the object is removed."""
        entry = self.owners.entry(node)
        if entry is None:
            return
        obj = entry.load()
        meta = obj["metadata"]
        kept = [item for item in meta.get("finalizers") or [] if item != finalizer]
        if kept:
            meta["finalizers"] = kept
            self.api.write(resource, MODIFIED, obj)
            return
        meta.pop("finalizers", None)
        stays = meta.get("deletionGracePeriodSeconds") or (
            resource.plural == "namespaces" and (obj.get("spec") or {}).get("finalizers")
        )
        self.api.write(resource, MODIFIED if stays else DELETED, obj)


def _waits(entry: Entry) -> bool:
    """Whether an object terminates and waits until its dependents are deleted."""
    if b'"deletionTimestamp":' not in entry.tail:
        return False
    meta = entry.load()["metadata"]
    return bool(meta.get("deletionTimestamp")) and deletion.FOREGROUND in (meta.get("finalizers") or [])
