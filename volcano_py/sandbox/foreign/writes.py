"""Changes of the copy as requests to the foreign server: patches, deletions and finalizations, in order per object."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED

LOG = logging.getLogger(__name__)
Object = dict[str, Any]
Arrived = Callable[[Resource, Object | None, str], None]

AT_ONCE = 32
"""Maximum number of requests in flight."""
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp")
"""Fields of metadata that only the server changes."""
_LISTS_WITH_OTHERS = ("finalizers", "ownerReferences")
"""Lists of metadata that other clients change, too: a patch of them contains the resourceVersion."""


@dataclass(slots=True)
class Write:
    """One request: a method, a subresource, and a body."""

    method: str
    subresource: str
    body: Object


@dataclass(slots=True)
class _Object:
    resource: Resource
    namespace: str
    name: str
    waiting: deque[Write] = field(default_factory=deque)
    gone: bool = False


class Writes:
    """Sends writes. `arrived` is called with the server's response when no other write of an object is pending."""

    def __init__(self, client: Client, arrived: Arrived) -> None:
        self.client = client
        self._arrived = arrived
        self._objects: dict[tuple[str, str], _Object] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._reported = ""

    def pending(self, resource: Resource, key: str) -> bool:
        """Whether a write of an object is in flight or pending."""
        return (resource.collection.name, key) in self._objects

    def change(self, resource: Resource, type_: str, before: Object | None, after: Object) -> None:
        """Send the change of an object from `before` to `after`."""
        meta = after["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        writes = requests(resource, type_, before, after)
        if not writes:
            return
        where = (resource.collection.name, f"{namespace}/{name}" if namespace else name)
        known = self._objects.get(where)
        if known is not None:
            for write in writes:
                _add(known.waiting, write)
            return
        known = self._objects[where] = _Object(resource, namespace, name, deque(writes))
        task = asyncio.create_task(self._send(where, known))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def forget(self, resource: Resource, key: str) -> None:
        """Drop the pending writes of a deleted object."""
        known = self._objects.get((resource.collection.name, key))
        if known is not None:
            known.gone = True
            known.waiting.clear()

    async def settled(self) -> None:
        """Wait until all writes are sent."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _send(self, where: tuple[str, str], known: _Object) -> None:
        answer: Object | None = None
        backoff = Backoff()
        while known.waiting:
            write = known.waiting.popleft()
            try:
                async with self._slots:
                    answer = await self._request(known, write)
                backoff.reset()
            except NotFound:
                break
            except AlreadyExists:
                continue  # the next write contains the change
            except ApiError as error:
                if error.status == 429 or error.status >= 500:
                    known.waiting.appendleft(write)
                    await asyncio.sleep(backoff.next())
                    continue
                if error.status != 409:  # after a conflict the watch returns the newer object
                    self._report(f"{known.resource.plural} {where[1]}: {error}")
                answer = None
                break
            except KubeError as error:
                self._report(str(error))
                if not known.gone:
                    known.waiting.appendleft(write)
                await asyncio.sleep(backoff.next())
        del self._objects[where]
        if known.gone or answer is None or "resourceVersion" not in (answer.get("metadata") or {}):
            answer = None
        self._arrived(known.resource, answer, where[1])

    def _report(self, text: str) -> None:
        """Log an error, unless it is equal to the previous one."""
        if text != self._reported:
            LOG.warning("%s", text)
        self._reported = text

    async def _request(self, known: _Object, write: Write) -> Object:
        resource = known.resource
        path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        path += f"/namespaces/{known.namespace}" if known.namespace else ""
        path += f"/{resource.plural}"
        if write.method != "POST":
            path += f"/{known.name}" + (f"/{write.subresource}" if write.subresource else "")
        content = "application/merge-patch+json" if write.method == "PATCH" else "application/json"
        body = await self.client.raw(write.method, path, body=orjson.dumps(write.body), content_type=content)
        answer: Object = orjson.loads(body)
        return answer


def requests(resource: Resource, type_: str, before: Object | None, after: Object) -> list[Write]:
    """The requests that change an object from `before` to `after`."""
    kind = {"kind": resource.kind, "apiVersion": resource.api_version}
    meta = after["metadata"]
    if type_ == ADDED or before is None:
        new = {key: value for key, value in meta.items() if key not in _SERVERS}
        return [Write("POST", "", {**kind, **after, "metadata": new})]
    same = {"uid": meta["uid"]} if before["metadata"].get("resourceVersion") else {}
    ends = meta.get("deletionGracePeriodSeconds") == 0 != before["metadata"].get("deletionGracePeriodSeconds")
    finalizers_change = meta.get("finalizers") != before["metadata"].get("finalizers")
    if resource.plural == "pods" and (ends or (type_ == DELETED and not finalizers_change)):
        return [Write("DELETE", "", {"gracePeriodSeconds": 0, "preconditions": same})]
    writes = []
    if resource.plural == "namespaces" and not resource.group and after.get("spec") != before.get("spec"):
        spec = {"finalizers": (after.get("spec") or {}).get("finalizers") or []}
        writes.append(Write("PUT", "finalize", {**kind, "metadata": {"name": meta["name"], **same}, "spec": spec}))
        after = {**after, "spec": before.get("spec")}
    separate = "status" in resource.subresources
    old = {key: value for key, value in before.items() if not (separate and key == "status")}
    new = {key: value for key, value in after.items() if not (separate and key == "status")}
    old["metadata"], new["metadata"] = _writable_metadata(old["metadata"]), _writable_metadata(new["metadata"])
    change = difference(old, new)
    if change:
        version = {}
        if set(_LISTS_WITH_OTHERS) & set(change.get("metadata") or {}):
            version = {"resourceVersion": before["metadata"].get("resourceVersion")}
        change["metadata"] = {**(change.get("metadata") or {}), **same, **version}
        writes.append(Write("PATCH", "", change))
    if separate and (after.get("status") or {}) != (before.get("status") or {}):
        status = difference(before.get("status") or {}, after.get("status") or {})
        writes.append(Write("PATCH", "status", {"metadata": dict(same), "status": status}))
    return writes


def difference(old: Object, new: Object) -> Object:
    """The JSON merge patch (RFC 7386) that makes `old` into `new`."""
    patch: Object = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif value != before or key not in old:
            patch[key] = value
    return patch


def _writable_metadata(meta: Object) -> Object:
    return {key: value for key, value in meta.items() if key not in (*_SERVERS, "deletionGracePeriodSeconds")}


def _add(waiting: deque[Write], write: Write) -> None:
    """Add a write; a pending patch of the same part is merged with it."""
    last = waiting[-1] if waiting else None
    if last is not None and (last.method, last.subresource) == ("PATCH", write.subresource) and write.method == "PATCH":
        last.body = _merged(last.body, write.body)
    else:
        waiting.append(write)


def _merged(first: Object, second: Object) -> Object:
    """One merge patch with the effect of two."""
    merged = dict(first)
    for key, value in second.items():
        before = merged.get(key)
        merged[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged
