"""The requests of controllers to a foreign server. Reads use the copy; the server's responses update it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from volcano_py.api.resource_types import EVENT, ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, Conflict, KubeError, NotFound
from volcano_py.kube.events import EventWrite
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import complete
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import Entry
from volcano_py.sandbox.controllers.runtime.client import Verbs
from volcano_py.sandbox.foreign.mirror import Mirror

Object = dict[str, Any]

ATTEMPTS = 5
"""Maximum number of attempts of an update when other clients change the object at the same time."""


class ForeignVerbs(Verbs):
    """Implements the controllers' verbs with a client."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.client: Client = mirror.client

    async def create(self, name: str, resource: Resource, body: Object) -> Object:
        try:
            made: Object = await self.client.create(_type(resource), body, body["metadata"].get("namespace"))
        except KubeError as error:
            raise _status(error) from error
        self._take(resource, made)
        return made

    async def update(
        self, name: str, resource: Resource, key: str, change: Callable[[Object], Any], uid: str, status: bool
    ) -> None:
        entry = resource.collection.entries.get(key)
        current = complete(resource, entry.load()) if entry is not None else None
        if current is None or (uid and current["metadata"]["uid"] != uid):
            raise StatusError(404, "NotFound", f'{resource.qualified} "{key}" not found')
        subresource = "status" if status and "status" in resource.subresources else None
        namespace, _, object_name = key.rpartition("/")
        try:
            for attempt in range(ATTEMPTS):
                new = orjson.loads(orjson.dumps(current))
                change(new)
                if new == current:
                    return
                try:
                    self._take(resource, await self.client.update(_type(resource), new, subresource))
                    return
                except Conflict:
                    if attempt == ATTEMPTS - 1:
                        raise
                    current = await self.client.get(_type(resource), object_name, namespace or None)
                    if uid and current["metadata"]["uid"] != uid:
                        raise StatusError(404, "NotFound", f'{resource.qualified} "{key}" was replaced') from None
        except KubeError as error:
            raise _status(error) from error

    async def delete(self, name: str, resource: Resource, entry: Entry, policy: str, grace: int | None) -> None:
        try:
            await self.client.delete(
                _type(resource),
                entry.name,
                entry.namespace or None,
                uid=entry.uid,
                grace_period_seconds=grace,
                propagation_policy=policy,
            )
        except KubeError as error:
            raise _status(error) from error

    async def exists(self, reference: Object, namespace: str) -> bool:
        resource = self.mirror.registry.by_kind.get((reference.get("apiVersion", ""), reference.get("kind", "")))
        if resource is None:  # an unknown kind, or not defined yet: nothing is deleted
            return True
        try:
            found = await self.client.get(_type(resource), reference["name"], namespace or None)
        except NotFound:
            return False
        except KubeError as error:
            raise _status(error) from error
        return bool(found["metadata"]["uid"] == reference.get("uid"))

    async def record(self, name: str, write: EventWrite) -> None:
        try:
            if write.patch is not None:
                try:
                    await self.client.patch(EVENT, write.name, write.patch, write.namespace)
                    return
                except NotFound:
                    pass
            await self.client.create(EVENT, write.create, write.namespace)
        except KubeError as error:
            raise _status(error) from error

    def _take(self, resource: Resource, obj: Object) -> None:
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        if not self.mirror.writes.pending(resource, key):
            self.mirror.arrived(resource, obj, key)


def _type(resource: Resource) -> ResourceType:
    return ResourceType(resource.group, resource.version, resource.plural, resource.kind, resource.namespaced)


def _status(error: KubeError) -> StatusError:
    if isinstance(error, ApiError):
        return StatusError(error.status, error.reason, error.message, error.details)
    return StatusError(503, "ServiceUnavailable", str(error))
