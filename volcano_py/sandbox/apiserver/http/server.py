"""The HTTP server: converts path, query and headers of a request to a verb, and its result to a response.

Kubernetes: the handler chain of k8s.io/apiserver/pkg/server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply.patch import APPLY_PATCH
from volcano_py.sandbox.apiserver.auth import authorization
from volcano_py.sandbox.apiserver.auth.authentication import Authenticator
from volcano_py.sandbox.apiserver.auth.impersonation import impersonate
from volcano_py.sandbox.apiserver.endpoints import reviews, subresources, views
from volcano_py.sandbox.apiserver.endpoints.verbs import create, delete, patch, read, update
from volcano_py.sandbox.apiserver.http import audit, discovery
from volcano_py.sandbox.apiserver.http.audit import AuditLog
from volcano_py.sandbox.apiserver.http.routing import Route, Target, route, unserved, verb_of
from volcano_py.sandbox.apiserver.http.streaming import serve_watch
from volcano_py.sandbox.apiserver.registry.api import Api, Plain, Result, Stream
from volcano_py.sandbox.apiserver.registry.request import Request, User, flag, integer, read_write_options
from volcano_py.sandbox.apiserver.serializer import protobuf_writer
from volcano_py.sandbox.apiserver.serializer.negotiate import Form, negotiate, not_acceptable
from volcano_py.sandbox.apiserver.storage.durable import Durable
from volcano_py.sandbox.apiserver.storage.store import TooLarge

LOG = logging.getLogger(__name__)
WARNINGS: web.RequestKey[list[str]] = web.RequestKey("warnings", list)
BODY_LIMIT = 3 * 1024 * 1024
IDLE_SECONDS = 90.0
"""Timeout for (the rest of) a request's head, in seconds."""
TLS_BUFFER = 32 * 1024
"""asyncio's read buffer of each TLS connection; its default of 256 KiB is too large for ten thousand watches."""
BODY_SECONDS = 60.0
"""Timeout for a request's body, in seconds."""

PathHandler = Callable[["Server", web.BaseRequest, str], Awaitable[web.StreamResponse]]


class Server:
    """The HTTP side of an Api: `paths` serve everything except resources (version, health, discovery, openapi)."""

    def __init__(self, api: Api, authenticator: Authenticator) -> None:
        self.api = api
        self.authenticator = authenticator
        self.paths: dict[str, PathHandler] = {}
        self.prefixes: list[tuple[str, PathHandler]] = []
        self.watchers: set[Any] = set()
        self._runner: web.ServerRunner | None = None
        self.port = 0
        self.durable: Durable | None = None
        self.audit: AuditLog | None = None
        self._bookmarks: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Listen; OSError when the port is in use."""
        sslproto.SSLProtocol.max_size = TLS_BUFFER
        server = web.Server(
            self.handle, request_factory=_request_factory, access_log=None, keepalive_timeout=IDLE_SECONDS
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._bookmarks = asyncio.create_task(self._send_bookmarks())

    async def stop(self) -> None:
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        for watcher in list(self.watchers):
            watcher.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _send_bookmarks(self) -> None:
        while True:
            await asyncio.sleep(45 + 15 * random.random())
            self.remind_watchers()

    def remind_watchers(self) -> None:
        """Send each watch a bookmark, and end those whose client has disconnected without a later event."""
        for watcher in list(self.watchers):
            if watcher.connected():
                watcher.bookmark()
            else:
                watcher.close()

    # --- one request -------------------------------------------------------------------------------------------------

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Serve one request; the response is sent after the data that it depends on is persisted."""
        if self.audit is not None:
            http[audit.RECEIVED] = metadata.now_micro()
        answer = await self._answer(http)
        if self.durable is not None and not answer.prepared:
            try:
                await self.durable.settled()
            except errors.StatusError as error:
                answer = self._status(http, error)
        if self.audit is not None:
            self.audit.note(http, answer)
        return answer

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        """The response; any exception becomes a Status."""
        try:
            return await self._handle(http)
        except errors.PageNotFound:
            return web.Response(
                status=404, body=b"404 page not found\n", headers={"Content-Type": "text/plain; charset=utf-8"}
            )
        except errors.StatusError as error:
            return self._status(http, error)
        except TooLarge:
            return self._status(http, errors.StatusError(500, "", "etcdserver: request is too large"))
        except web.HTTPRequestEntityTooLarge:
            text = f"Request entity too large: limit is {BODY_LIMIT}"
            return self._status(http, errors.StatusError(413, "RequestEntityTooLarge", text))
        except (asyncio.CancelledError, ConnectionError, HttpProcessingError):
            raise
        except Exception as error:
            if _too_deep(error):
                return self._status(http, errors.bad_request("exceeded max depth"))
            # an internal error: the client gets one line, the log the traceback
            LOG.exception("%s %s failed", http.method, http.path)
            return self._status(http, errors.internal(f"{type(error).__name__}: {error}"))

    def _status(self, http: web.BaseRequest, error: errors.StatusError) -> web.Response:
        body = orjson.dumps(error.body) if http.method != "HEAD" else b""
        headers = {"Content-Type": "application/json", "Cache-Control": "no-cache, private", **error.headers}
        accept = http.headers.get("Accept")
        if accept == views.YAML_TYPE and body:
            body, headers["Content-Type"] = views.to_yaml(error.body), views.YAML_TYPE
        elif accept == protobuf_writer.MEDIA_TYPE and body:
            body, headers["Content-Type"] = protobuf_writer.envelope(error.body), protobuf_writer.MEDIA_TYPE
        response = web.Response(status=error.code, body=body, headers=headers)
        for warning in http.get(WARNINGS, ()):
            response.headers.add("Warning", warning_header(warning))
        return response

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        path = http.path
        user = http[audit.SENDER] = self.authenticator.user(http)
        handler = self.paths.get(path)
        if handler is None:
            for prefix, candidate in self.prefixes:
                if path.startswith(prefix):
                    handler = candidate
                    break
        if handler is not None:
            self._authorize_path(http, user)
            return await handler(self, http, path)
        try:
            target = route(self.api.registry, path)
        except (errors.PageNotFound, errors.StatusError):
            self._authorize_unserved(http, user)
            raise
        if isinstance(target, Route):
            self._authorize_path(http, user)
            return await self._discover(http, target)
        return await self._resource(http, target, user)

    def _authorize_unserved(self, http: web.BaseRequest, user: User) -> None:
        """403 before 404: only permitted users can find out whether a kind is served."""
        named = unserved(http.method, http.path)
        if named is None:
            self._authorize_path(http, user)
            return
        access = authorization.Access(user, *named)
        access.user = self._impersonated(http, access)
        authorization.require(self.api, access)

    def _authorize_path(self, http: web.BaseRequest, user: User) -> None:
        """Raise 403 for a path outside the resources unless the sender, or the impersonated identity, may use it."""
        access = authorization.Access(user, http.method.lower(), path=http.path)
        access.user = self._impersonated(http, access)
        authorization.require(self.api, access)

    def _impersonated(self, http: web.BaseRequest, access: authorization.Access) -> User:
        """The identity that the request runs as; the audit log contains it if it differs from the sender's."""
        user = impersonate(self.api, access, http.headers)
        if user is not access.user:
            http[audit.IMPERSONATED] = user
        return user

    async def _discover(self, http: web.BaseRequest, target: Route) -> web.StreamResponse:
        return discovery.answer(self.api, http, target)

    async def _resource(self, http: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        query = http.query if http.query_string else {}
        headers = http.headers
        verb = verb_of(http.method, target, query)
        request = Request(
            verb,
            target.resource,
            target.namespace,
            target.name,
            target.subresource,
            query,
            user,
            content_type=headers.get("Content-Type", ""),
            user_agent=headers.get("User-Agent", ""),
        )
        http[WARNINGS] = request.warnings
        http[audit.REQUEST] = request
        access = authorization.access_of(request)
        access.user = request.user = self._impersonated(http, access)
        authorization.require(self.api, access)
        if http.method == "HEAD" and target.resource.custom is None:
            raise errors.method_not_allowed()
        if verb not in ("get", "list", "watch"):
            request.body = await _body(http)
        if target.subresource and target.subresource != "status":
            return await self._subresource(http, request)
        custom = target.resource.custom
        if custom is not None and custom.deprecated:
            request.warn(custom.deprecation)
        if query and "export" in query and verb in ("get", "list"):
            raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        if verb == "get":
            form = self._form(http)
            entry = read.get(self.api, request)
            return self._object(http, request, Result(target.resource, entry.tail), form)
        if verb in ("list", "watch"):
            form = self._form(http)
            if verb == "watch":
                return await serve_watch(self.watchers, self.durable, http, request, form)
            page = read.list_page(self.api, request)
            body = views.list_body(form, target.resource, page, _include(request, form))
            return self._bytes(http, 200, body, form, request)
        return await self._write(http, request, verb)

    async def _write(self, http: web.BaseRequest, request: Request, verb: str) -> web.StreamResponse:
        form = self._form(http, writing=True)
        api = self.api
        result: Result | Plain
        review = reviews.HANDLERS.get(request.resource.qualified)
        if review is not None and verb == "create":
            read_write_options(request)
            return self._plain(await review(api, request), request)
        if verb == "deletecollection":
            delete.read_options(request)
            entries = read.select(request.resource, read.selection(request))
            tails = await delete.delete_collection(api, request, entries)
            meta = {"resourceVersion": str(api.store.revision)}
            return self._bytes(http, 200, views.items_body(request.resource, tails, meta), form, request)
        if verb == "delete":
            result = await delete.delete(api, request)
        else:
            kind = patch.patch_type(request) if verb == "patch" else ""
            read_write_options(request, "apply" if kind == APPLY_PATCH else kind)
            if verb == "create":
                result = await create.create(api, request)
            elif verb == "update":
                result = await update.update(api, request)
            else:
                result = await patch.patch_object(api, request)
        if isinstance(result, Plain):
            return self._plain(result, request)
        return self._object(http, request, result, form)

    async def _subresource(self, http: web.BaseRequest, request: Request) -> web.StreamResponse:
        resource, name = request.resource, request.subresource
        handler = self.api.subresources.get((resource.qualified, name)) or self.api.subresources.get(("*", name))
        if handler is None:
            subresources.entry_of(request)
            raise errors.StatusError(501, "NotImplemented", f"{resource.plural}/{name} is not served here")
        form = self._form(http, writing=request.verb != "get") if name not in ("log",) else Form()
        if request.verb in ("create", "update", "patch"):
            kind = patch.patch_type(request) if request.verb == "patch" else ""
            read_write_options(request, "apply" if kind == APPLY_PATCH else kind)
        result = await handler(self.api, request)
        if isinstance(result, Stream):
            return await self._pieces(http, result)
        if isinstance(result, Plain):
            return self._plain(result, request)
        return self._object(http, request, result, form)

    # --- responses ---------------------------------------------------------------------------------------------------

    def _form(self, http: web.BaseRequest, writing: bool = False) -> Form:
        try:
            form = negotiate(http.headers.get("Accept", ""))
        except errors.StatusError:
            if writing:
                text = (
                    "406: Not Acceptable\n\nAvailable representations: "
                    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
                )
                raise errors.StatusError(406, "NotAcceptable", text, {}) from None
            raise not_acceptable() from None
        if http.query_string and flag(http.query, "pretty") and form.media == "json":
            return Form(form.media, form.as_, form.version, True)
        return form

    def _object(self, http: web.BaseRequest, request: Request, result: Result, form: Form) -> web.Response:
        if form.as_ == "PartialObjectMetadataList":
            kind = result.resource.kind
            text = f"you requested {form.as_}, but the requested object is not a list (*core.{kind})"
            raise errors.StatusError(406, "NotAcceptable", text)
        body = views.object_body(form, result.resource, result.tail, _include(request, form))
        return self._bytes(http, result.status, body, form, request)

    def _bytes(self, http: web.BaseRequest, status: int, body: bytes, form: Form, request: Request) -> web.Response:
        content_type = "application/json" if form.media == "json" else "application/yaml"
        response = web.Response(
            status=status,
            body=body if http.method != "HEAD" else b"",
            headers={"Content-Type": content_type, "Cache-Control": "no-cache, private"},
        )
        for warning in request.warnings:
            response.headers.add("Warning", warning_header(warning))
        return response

    async def _pieces(self, http: web.BaseRequest, stream: Stream) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": stream.content_type, "Cache-Control": "no-cache"})
        response.enable_chunked_encoding()
        await response.prepare(http)
        async with contextlib.aclosing(stream.pieces) as pieces:
            async for piece in pieces:
                if http.transport is None:
                    break
                await response.write(piece)
        await response.write_eof()
        return response

    def _plain(self, result: Plain, request: Request) -> web.Response:
        if result.text is not None:
            body, content_type = result.text, result.content_type
        else:
            body, content_type = orjson.dumps(result.body), "application/json"
        response = web.Response(status=result.status, body=body)
        if result.status != 204:
            response.headers["Content-Type"] = content_type
        for warning in request.warnings:
            response.headers.add("Warning", warning_header(warning))
        return response


async def _body(http: web.BaseRequest) -> bytes:
    """The body of the request; an error if it is invalid, too large or takes too long."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await http.read()
    except TimeoutError:
        text = f"Timeout: the body of the request did not arrive within {BODY_SECONDS:g} seconds"
        raise errors.StatusError(408, "Timeout", text) from None
    except ConnectionError:  # the client has closed the connection
        raise errors.bad_request("unexpected EOF") from None
    except web.RequestPayloadError as error:
        raise errors.bad_request(f"the body of the request cannot be read: {error}") from None


def _too_deep(error: Exception) -> bool:
    """Whether an object is nested too deeply to be processed or written."""
    return isinstance(error, RecursionError) or str(error) == "Recursion limit reached"  # the latter is orjson's


def warning_header(text: str) -> str:
    """The value of a Warning header."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'299 - "{escaped}"'


def _include(request: Request, form: Form) -> str:
    """Which form of the object the rows of a Table contain."""
    if form.as_ != "Table":
        return ""
    include = request.query.get("includeObject", "")
    if include not in ("", "None", "Metadata", "Object"):
        text = "Unable to convert to Table as requested: includeObject: Invalid value: "
        raise errors.bad_request(f"{text}\"{include}\": must be 'Metadata', 'Object', 'None', or empty")
    return include


class _Request(web.BaseRequest):
    """A request with the API server's limit for bodies."""


def _request_factory(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    return _Request(message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=BODY_LIMIT)


__all__ = ["Server", "integer"]
