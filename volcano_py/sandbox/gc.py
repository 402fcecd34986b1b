"""Garbage collection by ownerReferences, and the emptying of namespaces that are going.

Kubernetes: the garbage collector (background, foreground and orphan propagation) and the namespace controller.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from volcano_py.sandbox.apiserver import errors, managed, metadata
from volcano_py.sandbox.apiserver.api import Api
from volcano_py.sandbox.apiserver.resources import Resource
from volcano_py.sandbox.apiserver.store import DELETED, MODIFIED, Collection, Entry, Event
from volcano_py.sandbox.apiserver.verbs import delete as deletion

LOG = logging.getLogger(__name__)
Object = dict[str, Any]
Node = tuple[str, str]  # collection, key

USER = "system:serviceaccount:kube-system:generic-garbage-collector"
RECHECK = 0.05  # seconds between looks at a namespace that is not empty yet


class GarbageCollector:
    """Watches every write; deletes dependents whose owners are gone."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.alive: dict[str, Node] = {}
        self.owners: dict[Node, list[Object]] = {}
        self.dependents: dict[str, set[Node]] = {}
        self.queue: asyncio.Queue[tuple[str, Node]] = asyncio.Queue()
        self.queued: set[tuple[str, Node]] = set()
        self.terminating: set[str] = set()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for collection in list(self.api.store.collections.values()):
            for entry in collection.select():
                self._note(collection, entry)
        self.api.store.listeners.append(self.observe)
        self.task = asyncio.create_task(self._work())

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    # --- seeing ------------------------------------------------------------------------------------------------------

    def observe(self, collection: Collection, event: Event) -> None:
        """Keep the graph, and queue what follows from the change."""
        entry = event.entry
        node = (collection.name, entry.key)
        if event.type == DELETED:
            if self.alive.get(entry.uid) == node:
                del self.alive[entry.uid]
            self._unlink(node)
            for dependent in self.dependents.get(entry.uid, ()):
                self._enqueue("dependent", dependent)
            if event.prev is not None and b'"ownerReferences":[' in event.prev.tail:
                for owner in event.prev.load()["metadata"].get("ownerReferences") or []:
                    holder = self.alive.get(owner.get("uid", ""))
                    if holder is not None:
                        self._enqueue("owner", holder)
            if entry.namespace in self.terminating:
                self._enqueue("namespace", ("namespaces", entry.namespace))
            return
        self._note(collection, entry)
        tail = entry.tail
        if b'"deletionTimestamp":' in tail and b'"finalizers":[' in tail:
            self._enqueue("owner", node)
        if collection.name == "namespaces" and entry.fields["status.phase"] == "Terminating":
            # not at once: whoever asked may have more to say about the namespace
            asyncio.get_running_loop().call_later(RECHECK, self._enqueue, "namespace", node)

    def _note(self, collection: Collection, entry: Entry) -> None:
        node = (collection.name, entry.key)
        self.alive[entry.uid] = node
        has = b'"ownerReferences":[' in entry.tail
        if not has and node not in self.owners:
            return
        references = (entry.load()["metadata"].get("ownerReferences") or []) if has else []
        if references == self.owners.get(node):
            return
        self._unlink(node)
        if not references:
            return
        self.owners[node] = references
        for reference in references:
            uid = reference.get("uid", "")
            self.dependents.setdefault(uid, set()).add(node)
            if uid not in self.alive:
                self._enqueue("dependent", node)

    def _unlink(self, node: Node) -> None:
        for reference in self.owners.pop(node, []):
            uid = reference.get("uid", "")
            held = self.dependents.get(uid)
            if held is not None:
                held.discard(node)
                if not held:
                    del self.dependents[uid]

    def _enqueue(self, what: str, node: Node) -> None:
        item = (what, node)
        if item not in self.queued:
            self.queued.add(item)
            self.queue.put_nowait(item)

    # --- acting ------------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        handlers = {"dependent": self._dependent, "owner": self._owner, "namespace": self._namespace}
        done = 0
        while True:
            item = await self.queue.get()
            self.queued.discard(item)
            try:
                await handlers[item[0]](item[1])
            except errors.StatusError as error:
                LOG.debug("garbage collector: %s: %s", item, error)
            except Exception:
                LOG.exception("garbage collector: %s", item)
            done += 1
            if done % 50 == 0:
                await asyncio.sleep(0)

    def _find(self, node: Node) -> tuple[Resource, Entry] | None:
        collection = self.api.store.collections.get(node[0])
        entry = collection.entries.get(node[1]) if collection is not None else None
        resource = resource_of(self.api, node[0])
        return (resource, entry) if resource is not None and entry is not None else None

    async def _dependent(self, node: Node) -> None:
        """An owner of this object is gone or going."""
        found = self._find(node)
        if found is None:
            return
        resource, entry = found
        obj = entry.load()
        references = obj["metadata"].get("ownerReferences") or []
        if not references:
            return
        solid, dangling, waiting = [], [], []
        for reference in references:
            holder = self._find(self.alive.get(reference.get("uid", ""), ("", "")))
            if holder is None or (holder[1].namespace and holder[1].namespace != entry.namespace):
                dangling.append(reference)
            elif deletion.FOREGROUND in (holder[1].load()["metadata"].get("finalizers") or []) and (
                holder[1].load()["metadata"].get("deletionTimestamp")
            ):
                waiting.append(reference)
            else:
                solid.append(reference)
        if solid:
            if dangling or waiting:
                before = entry.load()
                obj["metadata"]["ownerReferences"] = solid
                self._track(resource, before, obj)
                self.api.write(resource, MODIFIED, obj)
            return
        finalizers = obj["metadata"].get("finalizers") or []
        if obj["metadata"].get("deletionTimestamp") and not waiting:
            if deletion.FOREGROUND in finalizers or deletion.ORPHAN in finalizers:
                self._enqueue("owner", node)
            return
        policy = "Background"
        if waiting and self.dependents.get(entry.uid):
            policy = "Foreground"
        elif deletion.ORPHAN in finalizers:
            policy = "Orphan"
        elif deletion.FOREGROUND in finalizers:
            policy = "Foreground"
        if obj["metadata"].get("deletionTimestamp"):
            return
        await self._delete(resource, entry, policy)

    async def _delete(self, resource: Resource, entry: Entry, policy: str) -> None:
        request = self.api.system_request("delete", resource, entry.namespace, entry.name, USER)
        request.options = {"propagationPolicy": policy, "preconditions": {"uid": entry.uid}}
        await deletion.delete_entry(self.api, request, entry)

    async def _owner(self, node: Node) -> None:
        """A dying object that waits for us: orphan its dependents, or delete them first."""
        found = self._find(node)
        if found is None:
            return
        resource, entry = found
        obj = entry.load()
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or []
        if not meta.get("deletionTimestamp"):
            return
        held = [self._find(dependent) for dependent in sorted(self.dependents.get(entry.uid, ()))]
        below = [row for row in held if row is not None]
        if deletion.ORPHAN in finalizers:
            for child_resource, child in below:
                changed, before = child.load(), child.load()
                kept = [r for r in changed["metadata"]["ownerReferences"] if r.get("uid") != entry.uid]
                if kept:
                    changed["metadata"]["ownerReferences"] = kept
                else:
                    changed["metadata"].pop("ownerReferences")
                self._track(child_resource, before, changed)
                self.api.write(child_resource, MODIFIED, changed)
            self._drop_finalizer(resource, node, deletion.ORPHAN)
        elif deletion.FOREGROUND in finalizers:
            blocking = False
            for _, child in below:
                child_meta = child.load()["metadata"]
                blocks = any(
                    r.get("uid") == entry.uid and r.get("blockOwnerDeletion")
                    for r in child_meta.get("ownerReferences") or []
                )
                blocking = blocking or blocks
                if not child_meta.get("deletionTimestamp"):
                    self._enqueue("dependent", self.alive.get(child.uid, ("", "")))
            if not blocking:
                self._drop_finalizer(resource, node, deletion.FOREGROUND)

    @staticmethod
    def _track(resource: Resource, before: Object, after: Object) -> None:
        """Fields that we take away belong to nobody any more."""
        managed.update(
            resource.type,
            before,
            after,
            manager="kube-controller-manager",
            api_version=resource.api_version,
            subresource="",
            time=metadata.now(),
            created=False,
        )

    def _drop_finalizer(self, resource: Resource, node: Node, finalizer: str) -> None:
        found = self._find(node)
        if found is None:
            return
        obj = found[1].load()
        meta = obj["metadata"]
        kept = [item for item in meta.get("finalizers") or [] if item != finalizer]
        if kept:
            meta["finalizers"] = kept
            self.api.write(resource, MODIFIED, obj)
            return
        meta.pop("finalizers", None)
        stays = meta.get("deletionGracePeriodSeconds") or (obj.get("spec") or {}).get("finalizers")
        type_ = (
            MODIFIED
            if stays and (resource.plural == "namespaces" or meta.get("deletionGracePeriodSeconds"))
            else DELETED
        )
        self.api.write(resource, type_, obj)

    # --- namespaces --------------------------------------------------------------------------------------------------

    async def _namespace(self, node: Node) -> None:
        """Delete what is in a dying namespace; when nothing is left, let it go."""
        found = self._find(node)
        if found is None:
            self.terminating.discard(node[1])
            return
        resource, entry = found
        obj = entry.load()
        if not obj["metadata"].get("deletionTimestamp"):
            return
        name = entry.name
        self.terminating.add(name)
        before = self._content(name)
        left = False
        seen: set[str] = set()
        for content in list(self.api.registry):
            if not content.namespaced or "list" not in content.verbs or content.collection.name in seen:
                continue
            seen.add(content.collection.name)
            for item in list(content.collection.select(name)):
                if b'"deletionTimestamp":' not in item.tail:
                    try:
                        await self._delete(content, item, "Background")
                    except errors.StatusError as error:
                        LOG.info("namespace %s: %s stays for now: %s", name, item.key, error)
            left = left or any(True for _ in content.collection.select(name))
        if left:
            self._report(resource, entry, before)
            asyncio.get_running_loop().call_later(RECHECK * 10, self._enqueue, "namespace", node)
            return
        current = self._find(node)
        if current is None:
            return
        obj = current[1].load()
        finalizers = [item for item in (obj.get("spec") or {}).get("finalizers") or [] if item != "kubernetes"]
        obj["spec"] = {"finalizers": finalizers} if finalizers else {}
        if finalizers or obj["metadata"].get("finalizers"):
            if obj != current[1].load():
                self.api.write(resource, MODIFIED, obj)
            return
        self.terminating.discard(name)
        self.api.write(resource, DELETED, obj)

    def _content(self, namespace: str) -> dict[str, int]:
        """How many objects of each resource a namespace holds."""
        out: dict[str, int] = {}
        for content in self.api.registry:
            if content.namespaced and "list" in content.verbs and content.collection.name not in out:
                count = sum(1 for _ in content.collection.select(namespace))
                if count:
                    out[content.collection.name] = count
        return out

    def _report(self, resource: Resource, entry: Entry, before: dict[str, int]) -> None:
        """Say in the namespace's conditions what it waits for."""
        left = self._content(entry.name)
        finalizers: dict[str, int] = {}
        for name in left:
            for item in self.api.store.collections[name].select(entry.name):
                for finalizer in item.load()["metadata"].get("finalizers") or []:
                    finalizers[finalizer] = finalizers.get(finalizer, 0) + 1
        texts = ", ".join(
            f"{name if '.' in name else name + '.'} has {count} resource instances"
            for name, count in sorted(left.items())
        )
        held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        rows = [
            (
                "NamespaceDeletionDiscoveryFailure",
                False,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                False,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                False,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            ("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {texts}"),
            (
                "NamespaceFinalizersRemaining",
                bool(finalizers),
                "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
                f"Some content in the namespace has finalizers remaining: {held}"
                if finalizers
                else "All content-preserving finalizers finished",
            ),
        ]
        obj = entry.load()
        old = {row["type"]: row for row in obj.get("status", {}).get("conditions") or []}
        conditions = []
        for type_, value, reason, message in rows:
            text = "True" if value else "False"
            stamp = metadata.now()
            if type_ in old and old[type_]["status"] == text:
                stamp = old[type_]["lastTransitionTime"]
            conditions.append(
                {"type": type_, "status": text, "lastTransitionTime": stamp, "reason": reason, "message": message}
            )
        if conditions != obj.get("status", {}).get("conditions"):
            before_obj = entry.load()
            obj["status"]["conditions"] = conditions
            managed.update(
                resource.type,
                before_obj,
                obj,
                manager="kube-controller-manager",
                api_version="v1",
                subresource="status",
                time=metadata.now(),
                created=False,
            )
            self.api.write(resource, MODIFIED, obj)


def resource_of(api: Api, collection: str) -> Resource | None:
    """A served resource that keeps its objects in a collection."""
    plural, _, group = collection.partition(".")
    return api.registry.find(group, plural)
