"""The client: typed reads, plain writes, retries and rate limits; `kube.transport` owns the connections.

    async with Client.from_kubeconfig() as client:
        pods = await client.list(PODS, "default", type=Pod)
        await client.patch(PODS, "web-0", {"metadata": {"labels": {"a": "b"}}}, "default")

Responses are dicts, or Structs if `type` is one. Failures are `ApiError` and its subclasses when the
server rejects the request, `Unreachable` when there is no response. Delays that the server requests (429, or 5xx with
Retry-After) are respected.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from volcano_py import __version__
from volcano_py.kube import credentials as credentials_
from volcano_py.kube import kubeconfig as kubeconfig_
from volcano_py.kube import wire
from volcano_py.kube.errors import ApiError, Unreachable, from_response
from volcano_py.kube.ratelimit import TokenBucket
from volcano_py.kube.request_counts import RequestCounts
from volcano_py.kube.transport import Request, Transport
from volcano_py.kube.watch import INACTIVITY, WatchEvent, watch_events

if TYPE_CHECKING:
    import os

    import aiohttp

    from volcano_py.api.resource_types import ResourceType

PAGE_SIZE = 500
MAX_RETRIES = 10
"""Maximum retries of one call after 429, or after 5xx with Retry-After."""
LONGEST_WAIT = 60.0
"""Maximum seconds; a longer Retry-After is reduced to this."""

PatchType = Literal["merge", "json", "strategic", "apply"]
_PATCH_CONTENT = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Client:
    """An API server, its verbs as coroutines. Use it as an asynchronous context manager, or call `close()`.

    `qps` and `burst` limit the rate (0: no limit); `timeout` is for one response, in seconds; `retries`
    limits the retries of one call after 429 and Retry-After; `gate` is called before each request waits for a
    connection, and again right before its bytes are written, and may raise to prevent the request. `requests` counts
    the requests; clients may share it.
    """

    def __init__(
        self,
        credentials: credentials_.Credentials,
        *,
        qps: float = 0,
        burst: int = 0,
        timeout: float = 30.0,
        connections: int = 128,
        user_agent: str = f"volcano-py/{__version__}",
        retries: int = MAX_RETRIES,
        gate: Callable[[], None] | None = None,
        lean: bool = False,
        requests: RequestCounts | None = None,
    ) -> None:
        self.credentials = credentials
        self.namespace = credentials.namespace
        """The namespace of the kubeconfig's context, for callers that need a default."""
        self._bucket = TokenBucket(qps, burst or max(1, int(qps)))
        self._timeout = timeout
        self._retries = retries
        self._gate = gate
        self._host = urlsplit(credentials.server).netloc
        self._requests = RequestCounts() if requests is None else requests
        self._transport = Transport(credentials, connections=connections, user_agent=user_agent, gate=gate, lean=lean)

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | os.PathLike[str] | None = None,
        context: str | None = None,
        *,
        master: str | None = None,
        **options: Any,
    ) -> Client:
        """A client for a kubeconfig (argument, else KUBECONFIG, else ~/.kube/config).

        `master` overrides its server URL.
        """
        return cls(credentials_.from_kubeconfig(path, context, master), **options)

    @classmethod
    def in_cluster(cls, **options: Any) -> Client:
        """A client with the pod's service account."""
        return cls(credentials_.in_cluster(), **options)

    @classmethod
    def for_flags(cls, kubeconfig: str | None = None, master: str | None = None, **options: Any) -> Client:
        """A client for the flags `--kubeconfig` and `--master`.

        A specified file, else in-cluster, else the default kubeconfig.
        """
        if not kubeconfig and not credentials_.in_kubeconfig_environment() and credentials_.inside_cluster():
            return cls.in_cluster(**options)
        if master and not kubeconfig and not any(p.exists() for p in kubeconfig_.paths(None)):
            return cls(credentials_.Credentials(server=credentials_.with_scheme(master, {}).rstrip("/")), **options)
        return cls.from_kubeconfig(kubeconfig, master=master, **options)

    async def __aenter__(self) -> Client:
        self._transport.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    # -- reading

    async def get(self, rt: ResourceType, name: str, namespace: str | None = None, type: Any = None) -> Any:
        """One object. Raises NotFound."""
        return wire.decode(await self.raw("GET", rt.path(namespace, name)), type)

    async def list(
        self,
        rt: ResourceType,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        type: Any = None,
        **params: Any,
    ) -> wire.Items[Any]:
        """All matching objects of one namespace, or of all namespaces, in one response."""
        query = selectors(label_selector, field_selector) | params
        return wire.decode_list(await self.raw("GET", rt.path(namespace), params=query), type)

    async def pages(
        self,
        rt: ResourceType,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        type: Any = None,
        limit: int = PAGE_SIZE,
    ) -> AsyncIterator[wire.Items[Any]]:
        """All matching objects, `limit` at a time. Raises Gone if the continue token has expired."""
        async for body in self.raw_pages(rt, namespace, label_selector, field_selector, limit):
            yield wire.decode_list(body, type)

    async def raw_pages(
        self,
        rt: ResourceType,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = PAGE_SIZE,
    ) -> AsyncIterator[bytes]:
        """The undecoded responses of `pages`. While the caller handles one, the server makes the next."""
        path = rt.path(namespace)
        query: dict[str, Any] = selectors(label_selector, field_selector) | {"limit": limit}
        body = await self.raw("GET", path, params=query)
        while token := wire.continue_token(body):
            query["continue"] = token
            following = asyncio.create_task(self.raw("GET", path, params=query))
            try:
                await asyncio.sleep(0)  # sends the request, also if the caller does not await anything
                yield body
                body = await following
            finally:
                if not following.cancel() and not following.cancelled():
                    following.exception()  # a caller that stops early is not interested in it
        yield body

    def watch(
        self,
        rt: ResourceType,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        resource_version: str | None = None,
        type: Any = None,
        timeout_seconds: int | None = None,
        inactivity: float = INACTIVITY,
    ) -> AsyncIterator[WatchEvent[Any]]:
        """Changes since `resource_version` until the server ends the stream; see `watch.watch_events`."""
        return watch_events(
            self,
            rt.path(namespace),
            selectors(label_selector, field_selector),
            resource_version=resource_version,
            type_=type,
            timeout_seconds=timeout_seconds,
            inactivity=inactivity,
        )

    # -- writing

    async def create(self, rt: ResourceType, obj: Any, namespace: str | None = None, type: Any = None) -> Any:
        """POST a new object; the default namespace is the object's own. Raises AlreadyExists, Invalid."""
        namespace = (namespace or wire.identity(obj)[0] or self.namespace) if rt.namespaced else None
        body = await self.raw("POST", rt.path(namespace), body=wire.encode(rt, obj))
        return wire.decode(body, type)

    async def create_subresource(
        self, rt: ResourceType, name: str, sub: str, obj: Any, namespace: str | None = None
    ) -> dict[str, Any]:
        """POST to a subresource such as pods/binding or pods/eviction; the answer is often a Status."""
        body = await self.raw("POST", rt.path(namespace, name, sub), body=wire.dumps(obj))
        answer: dict[str, Any] = wire.decode(body, None)
        return answer

    async def update(self, rt: ResourceType, obj: Any, subresource: str | None = None, type: Any = None) -> Any:
        """PUT the whole object, guarded by its resourceVersion if it has one. Raises Conflict.

        A Struct contains only the fields it declares: the server drops all others.
        """
        namespace, name = wire.identity(obj)
        path = rt.path(namespace or None, name, subresource)
        return wire.decode(await self.raw("PUT", path, body=wire.encode(rt, obj)), type)

    async def patch(
        self,
        rt: ResourceType,
        name: str,
        body: Any,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        type: Any = None,
    ) -> Any:
        """PATCH an object. `apply` is server-side apply and requires `field_manager`."""
        params: dict[str, Any] = {}
        if field_manager or patch_type == "apply":
            params["fieldManager"] = field_manager or "volcano-py"
        if force:
            params["force"] = "true"
        answer = await self.raw(
            "PATCH",
            rt.path(namespace, name, subresource),
            body=wire.encode(rt, body) if patch_type == "apply" else wire.dumps(body),
            params=params,
            content_type=_PATCH_CONTENT[patch_type],
        )
        return wire.decode(answer, type)

    async def delete(
        self,
        rt: ResourceType,
        name: str,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> dict[str, Any]:
        """DELETE, with preconditions on uid and resourceVersion if given. Raises NotFound, Conflict.

        The response is the object (while it terminates) or a Status.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if uid or resource_version:
            options["preconditions"] = {k: v for k, v in preconditions.items() if v}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if propagation_policy:
            options["propagationPolicy"] = propagation_policy
        body = await self.raw("DELETE", rt.path(namespace, name), body=wire.dumps(options))
        answer: dict[str, Any] = wire.decode(body, None)
        return answer

    # -- the wire

    async def raw(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retries: int | None = None,
    ) -> bytes:
        """Send one request and return the response body. Raises ApiError, Unreachable, and exceptions of the gate."""
        content = content_type if body is not None else None
        seconds = timeout or self._timeout
        attempt = 0
        while True:
            await self._bucket.acquire()
            if self._gate is not None:
                self._gate()
            request = Request(method, path, params, body, self._headers(content, headers), seconds)
            begun = time.perf_counter()
            try:
                status, wait, answer = await self._transport.exchange(request)
            except Unreachable:
                self._count(method, None, begun)
                raise
            self._count(method, status, begun)
            if status < 400:
                return answer
            error = from_response(status, answer, wait)
            # Respecting Retry-After relieves the server; without the header only 429 is retried.
            if attempt >= (self._retries if retries is None else retries) or not (
                wait is not None or error.status == 429
            ):
                raise error
            attempt += 1
            await asyncio.sleep(min(LONGEST_WAIT, 1.0 if wait is None else wait))

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, Any] | None = None, inactivity: float | None = None
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """A GET with a streamed response (watch, logs); it ends after `inactivity` seconds without data.

        Raises the same errors as `raw`; errors while reading are aiohttp's and are translated by `unreachable`.
        """
        await self._bucket.acquire()
        begun, opened = time.perf_counter(), False
        try:
            async with self._transport.stream(path, params, self._headers(None, None), inactivity) as content:
                opened = True
                self._count("GET", 200, begun)
                yield content
        except (ApiError, Unreachable) as error:
            if not opened:
                self._count("GET", error.status if isinstance(error, ApiError) else None, begun)
            raise

    def _count(self, method: str, status: int | None, begun: float) -> None:
        self._requests.observe(self._host, method, status, time.perf_counter() - begun)

    def _headers(self, content_type: str | None, extra: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"Accept": "application/json", **self.credentials.headers()}
        if content_type:
            headers["Content-Type"] = content_type
        if extra:
            headers.update(extra)
        return headers


def selectors(label_selector: str | None, field_selector: str | None) -> dict[str, Any]:
    """The query parameters of two selectors."""
    chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in chosen.items() if value}


__all__ = ["ApiError", "Client", "PatchType", "Unreachable", "WatchEvent"]
