"""Deletes the content of terminating namespaces. Kubernetes: the namespace controller and its conditions."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import DELETED, MODIFIED, Collection, Entry, Event
from volcano_py.sandbox.controllers.runtime.client import MANAGER, Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

LOG = logging.getLogger(__name__)
Object = dict[str, Any]

GATHER = 0.05  # a delay, because the client may change the namespace again
AGAIN = 0.5  # seconds until a failed deletion is retried


def controller(api: Api) -> Controller:
    cleaner = NamespaceController(api)
    return Controller("namespace-controller", cleaner.sync, everything=cleaner.concerns, gather=GATHER)


class NamespaceController:
    """Deletes the objects of a terminating namespace, then removes its finalizer."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.client = Client(api, "namespace-controller")
        self.terminating: set[str] = set()

    def concerns(self, collection: Collection, event: Event, before: list[Object]) -> Iterable[str]:
        entry = event.entry
        if collection.name == "namespaces":
            if event.type == DELETED:
                self.terminating.discard(entry.name)
            elif entry.fields["status.phase"] == "Terminating":
                self.terminating.add(entry.name)
                yield entry.name
        elif entry.namespace in self.terminating:
            yield entry.namespace

    async def sync(self, name: Any) -> float | None:
        resource = self.api.resource("", "namespaces")
        entry = resource.collection.get("", name)
        if entry is None or not entry.load()["metadata"].get("deletionTimestamp"):
            return None
        denied = False
        for plural in content(self.api, name):
            for item in list(self.api.store.collections[plural].select(name)):
                if b'"deletionTimestamp":' not in item.tail:
                    try:
                        await self.client.delete(plural, item)
                    except errors.StatusError as error:
                        denied = True
                        LOG.info("namespace %s: %s is retried: %s", name, item.key, error)
        left = content(self.api, name)
        current = resource.collection.get("", name)
        if current is None:
            return None
        if left:
            self._report(resource, current, left)
            return AGAIN if denied else None
        self._finish(resource, current)
        return None

    def _finish(self, resource: Resource, entry: Entry) -> None:
        obj = entry.load()
        finalizers = [item for item in (obj.get("spec") or {}).get("finalizers") or [] if item != "kubernetes"]
        obj["spec"] = {"finalizers": finalizers} if finalizers else {}
        if finalizers or obj["metadata"].get("finalizers"):
            if obj != entry.load():
                self.api.write(resource, MODIFIED, obj)
            return
        self.api.write(resource, DELETED, obj)

    def _report(self, resource: Resource, entry: Entry, left: dict[str, int]) -> None:
        """Set the namespace's conditions to the reasons why it still exists."""
        finalizers: dict[str, int] = {}
        for name in left:
            for item in self.api.store.collections[name].select(entry.name):
                for finalizer in item.load()["metadata"].get("finalizers") or []:
                    finalizers[finalizer] = finalizers.get(finalizer, 0) + 1
        obj = entry.load()
        rows = conditions(obj.get("status", {}).get("conditions") or [], left, finalizers, metadata.now())
        if rows == obj.get("status", {}).get("conditions"):
            return
        obj["status"]["conditions"] = rows
        managed.update(
            resource.type,
            entry.load(),
            obj,
            manager=MANAGER,
            api_version="v1",
            subresource="status",
            time=metadata.now(),
            created=False,
        )
        self.api.write(resource, MODIFIED, obj)


def content(api: Api, namespace: str) -> dict[str, int]:
    """The number of objects of each resource in a namespace."""
    out: dict[str, int] = {}
    for resource in api.registry:
        if resource.namespaced and "list" in resource.verbs and resource.collection.name not in out:
            count = sum(1 for _ in resource.collection.select(namespace))
            if count:
                out[resource.collection.name] = count
    return out


def conditions(old: list[Object], left: dict[str, int], finalizers: dict[str, int], now: str) -> list[Object]:
    """The conditions of a namespace that still has content."""
    texts = ", ".join(
        f"{name if '.' in name else name + '.'} has {count} resource instances" for name, count in sorted(left.items())
    )
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    rows = (
        ("DeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "DeletionGroupVersionParsingFailure",
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "DeletionContentFailure",
            False,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("ContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {texts}"),
        (
            "FinalizersRemaining",
            bool(finalizers),
            "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {held}"
            if finalizers
            else "All content-preserving finalizers finished",
        ),
    )
    known = {row["type"]: row for row in old}
    out = []
    for short, value, reason, message in rows:
        type_, text = "Namespace" + short, "True" if value else "False"
        stamp = known[type_]["lastTransitionTime"] if type_ in known and known[type_]["status"] == text else now
        out.append({"type": type_, "status": text, "lastTransitionTime": stamp, "reason": reason, "message": message})
    return out
