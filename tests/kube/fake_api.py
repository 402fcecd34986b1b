"""A small API server for tests: objects in memory, watches, and faults on demand.

`fault(match, answer, times)` lets the next matching requests be answered by `answer(request)` instead.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

PATH = re.compile(
    r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?$"
)


@dataclass(frozen=True)
class Kind:
    """Stands in for api.kinds.ResourceType, so that these tests need no particular kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        parts = ["/apis/" + self.group if self.group else "/api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, *(p for p in (name, subresource) if p)]
        return "/".join(parts)


PODS = Kind("", "v1", "pods", "Pod")
EVENTS = Kind("", "v1", "events", "Event")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
QUEUES = Kind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)


NATIVE_GROUPS = "podgroups.scheduling.k8s.io"


def pod(name: str, namespace: str = "default", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


def status(
    code: int, reason: str, message: str = "", headers: dict[str, str] | None = None, **extra: Any
) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return web.json_response({**body, "message": message or reason, **extra}, status=code, headers=headers)


@dataclass
class Fault:
    match: Callable[[web.Request], bool]
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]]
    times: int


@dataclass
class FakeApi:
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, str, str, str, dict[str, Any]]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    bodies: list[tuple[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    revision: int = 100
    oldest: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    runner: web.AppRunner | None = None
    open: set[Any] = field(default_factory=set)
    url: str = ""
    port: int = 0
    bindings: dict[tuple[str, str], str] = field(default_factory=dict)
    native_gangs: bool = False
    """Whether PodGroups of scheduling.k8s.io are served; they are those of the plural `NATIVE_GROUPS`."""
    native_version: str = "v1alpha2"
    version: str = "v1.36.1"
    """Of Kubernetes."""

    async def start(self, port: int = 0) -> FakeApi:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{tail:.*}", self.handle)
        self.runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def stop(self) -> None:
        if self.runner:
            for transport in self.open:
                if transport:
                    transport.abort()
            self.open.clear()
            await self.runner.cleanup()
            self.runner = None

    def fault(self, match: str | Callable[[web.Request], bool], answer: Any, times: int = 1) -> None:
        """`match`: 'METHOD fragment-of-path-and-query' or a function; `answer`: a response factory or
        coroutine.
        """
        if isinstance(match, str):
            method, _, fragment = match.partition(" ")

            def test(request: web.Request) -> bool:
                return request.method == method and fragment in request.path_qs

        else:
            test = match

        async def reply(request: web.Request) -> web.StreamResponse:
            made = answer(request) if callable(answer) else answer
            return await made if asyncio.iscoroutine(made) else made

        self.faults.append(Fault(test, reply, times))

    def put(self, plural: str, obj: dict[str, Any], kind: str = "ADDED") -> dict[str, Any]:
        """Store an object as another client does."""
        self.revision += 1
        meta = dict(obj["metadata"], resourceVersion=str(self.revision))
        key = (plural, meta.get("namespace", ""), meta["name"])
        if "uid" not in meta:
            known = self.objects.get(key)
            meta["uid"] = known["metadata"]["uid"] if known else f"uid-{meta['name']}-{self.revision}"
        stored = {**obj, "metadata": meta}
        if kind == "ADDED" and key in self.objects:
            kind = "MODIFIED"
        if kind == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = stored
        self.history.append((self.revision, plural, meta.get("namespace", ""), kind, stored))
        self.changed.set()
        self.changed = asyncio.Event()
        return stored

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        self.put(plural, self.objects[(plural, namespace, name)], "DELETED")

    def forget_history(self) -> None:
        """Every resourceVersion so far is too old from now on."""
        self.history.clear()
        self.oldest = self.revision + 1
        self.revision += 1

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.open.add(request.transport)
        self.log.append(f"{request.method} {request.path_qs}")
        if request.can_read_body:
            raw = await request.read()
            self.bodies.append((f"{request.method} {request.path}", json.loads(raw) if raw else None))
        for fault in self.faults:
            if fault.times > 0 and fault.match(request):
                fault.times -= 1
                return await fault.answer(request)
        if request.path == "/version":
            return web.json_response({"gitVersion": self.version})
        if request.path == "/apis/scheduling.k8s.io":
            served = ["v1", *([self.native_version] if self.native_gangs else [])]
            return web.json_response({"kind": "APIGroup", "versions": [{"version": version} for version in served]})
        found = PATH.match(request.path)
        if not found:
            return status(404, "NotFound", f"no path {request.path}")
        where = found.groupdict()
        if (where["group"], where["plural"]) == ("scheduling.k8s.io", "podgroups"):
            if not self.native_gangs or where["version"] != self.native_version:
                return status(404, "NotFound", "the server could not find the requested resource")
            where["plural"] = NATIVE_GROUPS
        key = (where["plural"], where["namespace"] or "", where["name"] or "")
        if request.method == "GET" and not where["name"]:
            if request.query.get("watch") == "true":
                return await self.watch(request, key[0], key[1])
            return self.list(request, key[0], key[1])
        if request.method == "POST":
            return self.create(where, key)
        current = self.objects.get(key)
        if current is None:
            return status(404, "NotFound", f"{key[0]} {key[2]!r} not found")
        if request.method == "GET":
            return web.json_response(current)
        body = self.bodies[-1][1]
        if request.method == "DELETE":
            wanted = (body or {}).get("preconditions", {})
            if any(current["metadata"].get(k) != v for k, v in wanted.items()):
                return status(409, "Conflict", "precondition failed")
            self.put(key[0], current, "DELETED")
            return web.json_response({"kind": "Status", "status": "Success"})
        if request.method == "PUT":
            sent = body["metadata"].get("resourceVersion")
            if sent and sent != current["metadata"]["resourceVersion"]:
                return status(409, "Conflict", "the object has been modified")
            body["metadata"].setdefault("uid", current["metadata"]["uid"])
            return web.json_response(self.put(key[0], body, "MODIFIED"))
        content = request.headers["Content-Type"]
        if "json-patch" in content:
            try:
                changed = json_patch(current, body)
            except (KeyError, AssertionError) as error:
                return status(422, "Invalid", f"the patch does not apply: {error!r}")
        else:
            uid = (body.get("metadata") or {}).get("uid")
            if uid and uid != current["metadata"]["uid"]:
                return status(409, "Conflict", "the UID in the precondition does not match")
            changed = merge(current, body, lists="strategic" in content)
        if changed["metadata"].get("resourceVersion") != current["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified")
        return web.json_response(self.put(key[0], changed, "MODIFIED"))

    def list(self, request: web.Request, plural: str, namespace: str) -> web.Response:
        found = [o for (p, n, _), o in sorted(self.objects.items()) if p == plural and namespace in ("", n)]
        start = int(request.query.get("continue", 0))
        limit = int(request.query.get("limit", 0)) or len(found)
        meta = {"resourceVersion": str(self.revision)}
        if start + limit < len(found):
            meta |= {"continue": str(start + limit), "remainingItemCount": len(found) - start - limit}
        return web.json_response({"kind": "List", "metadata": meta, "items": found[start : start + limit]})

    def create(self, where: dict[str, str], key: tuple[str, str, str]) -> web.Response:
        body = self.bodies[-1][1]
        if where["sub"] == "binding":
            target = self.bindings.get(key[1:])
            if target or key not in self.objects:
                return status(409, "Conflict", "already bound") if target else status(404, "NotFound")
            node = body["target"]["name"]
            self.bindings[key[1:]] = node
            bound = self.objects[key]
            self.put(key[0], {**bound, "spec": {**bound.get("spec", {}), "nodeName": node}}, "MODIFIED")
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        name = body["metadata"]["name"]
        namespace = where["namespace"] or ""
        if (key[0], namespace, name) in self.objects:
            return status(409, "AlreadyExists", f"{key[0]} {name!r} already exists")
        if namespace:
            body["metadata"]["namespace"] = namespace
        return web.json_response(self.put(key[0], body), status=201)

    async def watch(self, request: web.Request, plural: str, namespace: str) -> web.StreamResponse:
        after = int(request.query.get("resourceVersion", 0) or 0)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        if after < self.oldest:
            error = {
                "kind": "Status",
                "code": 410,
                "reason": "Expired",
                "message": "too old resource version",
            }
            await response.write(line("ERROR", error))
            return response
        while True:
            if plural == NATIVE_GROUPS and f"/{self.native_version}/" not in request.path:
                return response
            changed = self.changed
            for revision, p, n, kind, obj in list(self.history):
                if revision > after and p == plural and namespace in ("", n):
                    await response.write(line(kind, obj))
                    after = revision
            await changed.wait()


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def merge(old: Any, patch: Any, lists: bool = False) -> Any:
    """A merge patch; with `lists` those of conditions are merged by type, as a strategic merge patch does."""
    if lists and isinstance(patch, list) and isinstance(old, list) and patch and "type" in patch[0]:
        by_type = {item["type"]: item for item in old}
        for item in patch:
            by_type[item["type"]] = {**by_type.get(item["type"], {}), **item}
        return list(by_type.values())
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(merged.get(key, {}), value, lists)
        else:
            merged[key] = merge(merged.get(key), value, lists)
    return merged


def json_patch(old: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    new = json.loads(json.dumps(old))
    for step in patch:
        *way, last = step["path"].strip("/").split("/")
        at = new
        for part in way:
            at = at[part]
        if step["op"] == "test":
            assert at.get(last) == step["value"], step["path"]
        else:
            at[last] = step["value"]
    return new
