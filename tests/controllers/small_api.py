"""A small API server with what controllers rely on: versions, status subresources, patches, uid preconditions,
owner garbage collection, graceful deletion of pods on nodes, and watches. Not a conformant one."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from volcano_py.api import kinds
from volcano_py.api.meta import format_time

PATH = re.compile(
    r"^/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?$"
)
WITH_STATUS = {"jobs", "queues", "pods", "jobflows", "jobtemplates", "cronjobs", "hypernodes", "nodeshards"}
Key = tuple[str, str, str]


class Denied(Exception):
    def __init__(self, code: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.code, self.reason = code, reason


class SmallApi:
    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.events: list[tuple[int, str, str, dict[str, Any]]] = []
        self.writes: list[str] = []
        self.denial_of: Callable[[str, str], Denied | None] = lambda method, path: None
        """Called before every write."""
        self.revision = 0
        self.clock = 1_800_000_000.0
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> SmallApi:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[union-attr]
        return self

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    # -- for tests: reading and writing as another client

    def get(self, rt: kinds.ResourceType, name: str, namespace: str = "lab") -> dict[str, Any] | None:
        return self.objects.get((rt.plural, namespace if rt.namespaced else "", name))

    def all(self, rt: kinds.ResourceType) -> list[dict[str, Any]]:
        return [obj for key, obj in sorted(self.objects.items()) if key[0] == rt.plural]

    def put(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""
        rt = kinds.for_manifest(manifest)
        obj = copy.deepcopy(manifest)
        if rt.namespaced:
            obj["metadata"].setdefault("namespace", "lab")
        return self._create((rt.plural, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), obj)

    def change(self, rt: kinds.ResourceType, name: str, patch: dict[str, Any], namespace: str = "lab") -> None:
        """Merge a patch into an object, status included."""
        key = (rt.plural, namespace if rt.namespaced else "", name)
        self._store(key, merge(self.objects[key], patch), "MODIFIED")

    def delete(self, rt: kinds.ResourceType, name: str, namespace: str = "lab") -> None:
        self._remove((rt.plural, namespace if rt.namespaced else "", name))

    # -- the server

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        found = PATH.match(request.path)
        assert found, request.path
        key = (found["plural"], found["namespace"] or "", found["name"] or "")
        if request.method == "GET" and request.query.get("watch") == "true":
            return await self._watch(request, key[0])
        body = json.loads(await request.read() or b"null")
        try:
            if request.method != "GET":
                denial = self.denial_of(request.method, request.path)
                if denial:
                    raise denial
                if key[0] not in ("events", "leases"):
                    self.writes.append(f"{request.method} {request.path}")
            answer = self._answer(request, key, found["sub"] or "", body)
        except Denied as error:
            status = {"kind": "Status", "code": error.code, "reason": error.reason, "message": str(error)}
            return web.json_response(status, status=error.code)
        return web.json_response(answer)

    def _answer(self, request: web.Request, key: Key, sub: str, body: Any) -> dict[str, Any]:
        if request.method == "GET" and not key[2]:
            items = [obj for (plural, _, _), obj in self.objects.items() if plural == key[0]]
            return {"kind": "List", "metadata": {"resourceVersion": str(self.revision)}, "items": items}
        if request.method == "POST":
            return self._create((key[0], key[1], body["metadata"]["name"]), body)
        current = self.objects.get(key)
        if current is None:
            raise Denied(404, "NotFound", f"{key[0]} {key[2]!r} not found")
        if request.method == "GET":
            return current
        if request.method == "DELETE":
            return self._delete(key, current, body)
        if request.method == "PUT":
            sent = body["metadata"].get("resourceVersion")
            if sent and sent != current["metadata"]["resourceVersion"]:
                raise Denied(409, "Conflict", "the object has been modified")
            new = body
        elif "json-patch" in request.content_type:
            new = json_patch(current, body)
        else:
            new = merge(current, body)
        if new["metadata"].get("uid", current["metadata"]["uid"]) != current["metadata"]["uid"]:
            raise Denied(409, "Conflict", "uid mismatch")
        if sub == "status":
            new = {**current, "status": new.get("status", {})}
        elif key[0] in WITH_STATUS:
            new = {**new, "metadata": new["metadata"], "status": current.get("status", {})}
        if without_version(new) == without_version(current):
            return current
        return self._store(key, new, "MODIFIED")

    def _create(self, key: Key, obj: dict[str, Any]) -> dict[str, Any]:
        if key in self.objects:
            raise Denied(409, "AlreadyExists", f"{key[0]} {key[2]!r} already exists")
        stamp = format_time(self.clock)
        obj["metadata"] |= {"uid": f"uid-{self.revision + 1}", "creationTimestamp": stamp}
        if key[0] == "pods":
            obj.setdefault("status", {"phase": "Pending"})
        return self._store(key, obj, "ADDED")

    def _delete(self, key: Key, current: dict[str, Any], options: Any) -> dict[str, Any]:
        uid = ((options or {}).get("preconditions") or {}).get("uid")
        if uid and uid != current["metadata"]["uid"]:
            raise Denied(409, "Conflict", "uid precondition failed")
        graceful = key[0] == "pods" and current.get("spec", {}).get("nodeName")
        if graceful and current.get("status", {}).get("phase") in ("Pending", "Running"):
            if "deletionTimestamp" in current["metadata"]:
                return current
            stamp = {"metadata": {"deletionTimestamp": format_time(self.clock)}}
            return self._store(key, merge(current, stamp), "MODIFIED")
        self._remove(key)
        return {"kind": "Status", "status": "Success"}

    def _remove(self, key: Key) -> None:
        gone = self.objects.pop(key)
        self._record(key, gone, "DELETED")
        uid = gone["metadata"]["uid"]
        for other, obj in list(self.objects.items()):
            owners = obj["metadata"].get("ownerReferences") or []
            if other in self.objects and any(owner["uid"] == uid for owner in owners):
                self._remove(other)

    def _store(self, key: Key, obj: dict[str, Any], kind: str) -> dict[str, Any]:
        self.objects[key] = obj = copy.deepcopy(obj)
        self._record(key, obj, kind)
        return obj

    def _record(self, key: Key, obj: dict[str, Any], kind: str) -> None:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        self.events.append((self.revision, key[0], kind, copy.deepcopy(obj)))
        self._changed.set()
        self._changed = asyncio.Event()

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        after = int(request.query.get("resourceVersion") or 0)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        position = 0
        while True:
            changed = self._changed
            while position < len(self.events):
                revision, which, kind, obj = self.events[position]
                position += 1
                if which == plural and revision > after:
                    await response.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")
            await changed.wait()


def without_version(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}


def merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key, {}), value)
    return merged


def json_patch(obj: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    obj = copy.deepcopy(obj)
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        at: Any = obj
        for part in way:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if operation["op"] == "test":
            if at[last] != operation["value"]:
                raise Denied(422, "Invalid", "test failed")
        else:
            assert operation["op"] == "add", operation
            at[last] = operation["value"]
    return obj
