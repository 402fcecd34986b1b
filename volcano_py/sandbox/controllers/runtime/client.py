"""The API server's verbs for the controllers in its process: admission, validation and field managers as for any
client. Kubernetes: client-go.

Reads use the store itself, so a controller always reads its own writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import orjson

from volcano_py.kube.events import Correlator, EventWrite, reference
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.endpoints.verbs import create as creation
from volcano_py.sandbox.apiserver.endpoints.verbs import delete as deletion
from volcano_py.sandbox.apiserver.endpoints.verbs import update as updating
from volcano_py.sandbox.apiserver.registry.api import Api, complete
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import Entry
from volcano_py.sandbox.controllers.runtime.owners import resource_of

Object = dict[str, Any]

MANAGER = "kube-controller-manager"
VERBS = "verbs"
"""The extension of an Api that sends its controllers' requests to another server."""
SLICE = 8  # writes before other tasks of this process run


class Verbs(Protocol):
    """Sends the requests of controllers. All methods raise StatusError; `name` is the controller's."""

    async def create(self, name: str, resource: Resource, body: Object) -> Object:
        """The new object, complete."""

    async def update(
        self, name: str, resource: Resource, key: str, change: Callable[[Object], Any], uid: str, status: bool
    ) -> None:
        """Change an object in place, again after a conflict."""

    async def delete(self, name: str, resource: Resource, entry: Entry, policy: str, grace: int | None) -> None:
        """Delete one object, if it is still the one of the entry."""

    async def exists(self, reference: Object, namespace: str) -> bool:
        """Whether an owner that is not in the store exists."""

    async def record(self, name: str, write: EventWrite) -> None:
        """Create or count an Event."""


class LocalVerbs:
    """Implements Verbs with the API server of this process."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def create(self, name: str, resource: Resource, body: Object) -> Object:
        request = self._request(name, "create", resource, body["metadata"].get("namespace", ""), "")
        made = await creation.create_object(self.api, request, self.api.decode(request, body))
        return complete(resource, orjson.loads(b"{" + made.tail))

    async def update(
        self, name: str, resource: Resource, key: str, change: Callable[[Object], Any], uid: str, status: bool
    ) -> None:
        namespace, _, object_name = key.rpartition("/")
        request = self._request(name, "update", resource, namespace, object_name)
        request.subresource = "status" if status else ""

        def changed(old: Object) -> Object:
            copy = complete(resource, orjson.loads(orjson.dumps(old)))
            change(copy)
            return self.api.decode(request, copy)

        await updating.change_object(self.api, request, changed, uid=uid)

    async def delete(self, name: str, resource: Resource, entry: Entry, policy: str, grace: int | None) -> None:
        current = resource.collection.entries[entry.key]
        request = self._request(name, "delete", resource, entry.namespace, entry.name)
        request.options = {"propagationPolicy": policy, "preconditions": {"uid": entry.uid}}
        if grace is not None:
            request.options["gracePeriodSeconds"] = grace
        await deletion.delete_entry(self.api, request, current)

    async def exists(self, reference: Object, namespace: str) -> bool:
        return False

    async def record(self, name: str, write: EventWrite) -> None:
        resource = self.api.resource("", "events")
        more, key = write.patch, f"{write.namespace}/{write.name}"
        if more is not None and key in resource.collection.entries:
            await self.update(name, resource, key, lambda copy: copy.update(more), "", False)
            return
        await self.create(name, resource, write.create)

    def _request(self, manager: str, verb: str, resource: Resource, namespace: str, name: str) -> Request:
        user = f"system:serviceaccount:kube-system:{manager}"
        request = self.api.system_request(verb, resource, namespace, name, user)
        request.manager = MANAGER
        request.field_validation = "Ignore"
        return request


class Client:
    """Sends requests as one controller; raises StatusError when one is denied. Collections have the store's names."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name
        self._verbs: Verbs = api.extensions.get(VERBS) or LocalVerbs(api)
        self._correlator = Correlator(name)
        self._writes = 0

    def resource(self, collection: str) -> Resource:
        found = resource_of(self.api, collection)
        if found is None:
            raise KeyError(f"no resource {collection}")
        return found

    def get(self, collection: str, key: str) -> Object | None:
        """A copy of an object, complete with kind and apiVersion."""
        entry = self.api.store.collections[collection].entries.get(key)
        return complete(self.resource(collection), entry.load()) if entry is not None else None

    async def create(self, collection: str, body: Object) -> Object:
        await self._yield_sometimes()
        return await self._verbs.create(self.name, self.resource(collection), body)

    async def update(
        self,
        collection: str,
        key: str,
        change: Callable[[Object], Object | None],
        *,
        uid: str = "",
        status: bool = False,
    ) -> None:
        """Change an object in place (again after a conflict); 404 when it was deleted or replaced."""
        await self._yield_sometimes()
        await self._verbs.update(self.name, self.resource(collection), key, change, uid, status)

    async def set_status(self, collection: str, obj: Object, status: Object) -> None:
        """Write a status, unless it is unchanged."""
        meta = obj["metadata"]
        if (obj.get("status") or {}) != status:
            key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
            await self.update(collection, key, lambda copy: copy.update(status=status), uid=meta["uid"], status=True)

    async def delete(self, collection: str, entry: Entry, policy: str = "Background", grace: int | None = None) -> bool:
        """Delete the current version of an object; False if it does not exist."""
        await self._yield_sometimes()
        resource = self.resource(collection)
        current = resource.collection.entries.get(entry.key)
        if current is None:
            return False
        try:
            await self._verbs.delete(self.name, resource, entry, policy, grace)
        except StatusError as error:
            if error.code in (404, 409):
                return False
            raise
        return True

    async def exists(self, reference: Object, namespace: str) -> bool:
        """Whether the owner in a reference exists, although it is not in the store."""
        return await self._verbs.exists(reference, namespace)

    async def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        """An Event on an object, limited as by client-go; errors are ignored."""
        write = self._correlator.correlate(reference(obj), type_, reason, message)
        if write is None:
            return
        try:
            await self._verbs.record(self.name, write)
        except StatusError:  # mostly because the namespace is terminating
            self._correlator.forget(write)

    async def _yield_sometimes(self) -> None:
        self._writes += 1
        if self._writes % SLICE == 0:
            await asyncio.sleep(0)
