"""The API server of the sandbox without HTTP: requests and responses are objects.

A request runs as a task of the server, not of its client: a client that is gone does not cancel it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson
from aiohttp import HttpVersion11
from multidict import CIMultiDict, MultiDict

from tests.dst.virtual import PROCESS
from volcano_py.sandbox import volcano
from volcano_py.sandbox.apiserver.apimachinery.features import OF_VERSION
from volcano_py.sandbox.apiserver.assembly import new_api, new_server, put
from volcano_py.sandbox.apiserver.http.server import Server
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.controllers.runtime import runner
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.runner import Controller

KUBERNETES = "1.37"
GROUPS = ("system:masters", "system:authenticated")
SENDER: contextvars.ContextVar[str] = contextvars.ContextVar("sender", default="")
"""The process of this request."""
WRITER: contextvars.ContextVar[str] = contextvars.ContextVar("writer", default="server")
"""Who sent the request whose write is observed."""


class _Connection:
    """What a request has of its connection."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self.abort = cut

    def get_extra_info(self, name: str) -> None:
        return None


class _StreamWriter:
    """Receives the body of a streamed response."""

    length: int | None = None
    output_size = buffer_size = 0

    def __init__(self, push: Callable[[bytes | None], None]) -> None:
        self._push = push

    async def write_headers(self, status_line: str, headers: Any) -> None:
        pass

    def send_headers(self) -> None:
        pass

    async def write(self, data: bytes) -> None:
        self._push(bytes(data))

    async def write_eof(self, data: bytes = b"") -> None:
        if data:
            self._push(bytes(data))
        self._push(None)

    async def drain(self) -> None:
        pass

    def enable_chunking(self) -> None:
        pass


class HttpRequest(dict[Any, Any]):
    """The part of aiohttp's request that the server uses."""

    version = HttpVersion11
    keep_alive = True

    def __init__(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes,
        push: Callable[[bytes | None], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self.method = method
        path, _, self.query_string = target.partition("?")
        self.path = unquote(path)
        self.query: MultiDict[str] = MultiDict(parse_qsl(self.query_string, keep_blank_values=True))
        self.headers: CIMultiDict[str] = CIMultiDict(headers)
        self._body = body
        self.transport: Any = _Connection(self._cut)
        self._payload_writer = _StreamWriter(push)
        self._push = push

    def _cut(self) -> None:
        self.transport = None
        self._push(None)

    async def read(self) -> bytes:
        return self._body

    async def _prepare_hook(self, response: Any) -> None:
        pass


class InOrder(dict[Any, None]):
    """A set in the order of its insertions: those of objects have the order of their addresses."""

    def add(self, item: Any) -> None:
        self[item] = None

    def discard(self, item: Any) -> None:
        self.pop(item, None)


class ApiServer:
    """The store and the handlers. `serve` answers one request."""

    def __init__(self, users: tuple[str, ...]) -> None:
        self.api: Api = new_api(features=frozenset(OF_VERSION[KUBERNETES]), kubernetes=KUBERNETES)
        self.server: Server = new_server(self.api, {name: User(name, GROUPS) for name in users})
        self.server.watchers = InOrder()  # type: ignore[assignment]
        namespace = {
            "metadata": {"name": volcano.SYSTEM_NAMESPACE, "labels": {}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        put(self.api, "", "namespaces", namespace)
        for document in volcano.definitions():
            if document.get("kind") == "CustomResourceDefinition":
                established = self.api.extensions["definitions"].established(document)
                put(self.api, "apiextensions.k8s.io", "customresourcedefinitions", established)
        volcano.install_admission(self.api)
        self.context = contextvars.Context()
        self._loaded: dict[str, tuple[int, dict[str, tuple[Any, dict[str, Any]]], dict[str, dict[str, Any]]]] = {}
        """By collection: the revision at which it was read, its entries with their objects, and its objects."""

    def start(self) -> None:
        """Send bookmarks, as a running server does."""
        asyncio.get_running_loop().create_task(self.server._send_bookmarks(), context=self.context.copy())

    def run(self, *made: Callable[[Api], Controller]) -> None:
        """Run controllers of Kubernetes: those of the sandbox."""
        owners = Owners(self.api.store)
        owners.start()
        runner.start([make(self.api) for make in made], self.api.store, owners)

    def begin(self, user: str, request: HttpRequest, process: str = "") -> asyncio.Task[Any]:
        """Serve a request as a task of the server."""
        request.headers["Authorization"] = f"Bearer {user}"
        context = self.context.copy()
        context.run(WRITER.set, user)
        context.run(SENDER.set, process)
        context.run(PROCESS.set, None)
        return asyncio.get_running_loop().create_task(self.server.handle(request), context=context)  # type: ignore[arg-type]

    async def call(self, user: str, method: str, target: str, body: Any = None, kind: str = "") -> tuple[int, Any]:
        """One request of a user, without faults: status and object."""
        headers = {"Content-Type": kind or "application/json", "Accept": "application/json", "User-Agent": user}
        answer = await self.begin(user, HttpRequest(method, target, headers, orjson.dumps(body) if body else b""))
        return answer.status, orjson.loads(answer.body or b"{}")

    def objects(self, collection: str) -> dict[str, dict[str, Any]]:
        """All objects of a kind as they are now, by key. Do not modify them."""
        found = self.api.store.collections.get(collection)
        if found is None:
            return {}
        at, known, objects = self._loaded.get(collection, (-1, {}, {}))
        if at == self.api.store.revision:
            return objects
        fresh = {}
        for key in found.keys:
            entry = found.entries[key]
            seen = known.get(key)
            fresh[key] = seen if seen is not None and seen[0] is entry else (entry, entry.load())
        objects = {key: obj for key, (_, obj) in fresh.items()}
        self._loaded[collection] = self.api.store.revision, fresh, objects
        return objects
