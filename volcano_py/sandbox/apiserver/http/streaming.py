"""The HTTP side of a watch: its start, its lines, and its end. Kubernetes: handlers/watch.go."""

from __future__ import annotations

import asyncio
import contextlib
import random

import orjson
from aiohttp import web

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.endpoints import views
from volcano_py.sandbox.apiserver.endpoints.verbs import read
from volcano_py.sandbox.apiserver.endpoints.watch import Watcher
from volcano_py.sandbox.apiserver.http import audit
from volcano_py.sandbox.apiserver.printers import table
from volcano_py.sandbox.apiserver.registry.request import Request, flag, integer
from volcano_py.sandbox.apiserver.serializer.negotiate import Form
from volcano_py.sandbox.apiserver.storage.durable import Durable
from volcano_py.sandbox.apiserver.storage.store import ADDED, Entry

DEFAULT_SECONDS = 1800  # and up to twice as long
GRACE_SECONDS = 10  # for a client to read the rest after the timeout


def _check_options(request: Request) -> tuple[str, bool | None]:
    """(resourceVersion, sendInitialEvents), or the server's 422."""
    query = request.query
    version = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    causes = []
    if initial is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(errors.field_forbidden("resourceVersionMatch", text))
    if match:
        if initial is None:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(errors.field_forbidden("resourceVersionMatch", text))
        elif match != "NotOlderThan":
            causes.append(errors.unsupported("resourceVersionMatch", match, ["NotOlderThan"]))
    if causes:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", causes)
    if version and not version.isdigit():
        text = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise errors.StatusError(500, "", text)
    return version, initial


async def serve_watch(
    watchers: set[Watcher], durable: Durable | None, http: web.BaseRequest, request: Request, form: Form
) -> web.StreamResponse:
    """Stream events until the client disconnects, the timeout is over or the resource is no longer served."""
    if form.media != "json":
        form = Form(as_=form.as_, version=form.version)
    chosen = read.selection(request)
    resource = request.resource
    version, initial = _check_options(request)
    include = request.query.get("includeObject", "") if form.as_ == "Table" else ""
    encode = views.event_encoder(form, include)
    bookmarks = flag(request.query, "allowWatchBookmarks")

    def connected() -> bool:
        return http.transport is not None

    def cut() -> None:
        if http.transport is not None:
            http.transport.abort()

    watcher = Watcher(resource, chosen, form, include, encode, bookmarks, connected, cut)
    with_columns = form.as_ == "Table"
    watchers.add(watcher)
    timeout = integer(request.query, "timeoutSeconds") or int(DEFAULT_SECONDS * (1 + random.random()))
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    loop = asyncio.get_running_loop()
    timers = (loop.call_later(timeout, watcher.close), loop.call_later(timeout + GRACE_SECONDS, cut))
    try:
        state = initial is not False and (initial or version in ("", "0"))
        if state:
            for entry in read.select(resource, chosen):
                watcher.put(_line(resource, entry, encode, form, include, with_columns))
                with_columns = False
            if initial:
                watcher.bookmark(initial_end=True)
            watcher.began()
        elif version not in ("", "0"):
            revision = watcher.after = int(version)
            if revision < resource.collection.floor:
                text = f"too old resource version: {revision} ({resource.collection.floor})"
                watcher.fail(errors.expired(text))
            else:
                for event in resource.collection.since(revision):
                    watcher.offer(event)
        await response.prepare(http)
        while True:
            await watcher.ready.wait()
            data = watcher.take()
            if data:
                if with_columns:
                    data = _first_with_columns(data, resource)
                    with_columns = False
                if durable is not None:
                    await durable.settled()
                http[audit.STREAMED] = http.get(audit.STREAMED, 0) + len(data)
                await response.write(data)
            if watcher.closed and not watcher.queue:
                break
    except ConnectionError:
        pass
    except errors.StatusError as error:  # earlier events are no longer kept
        watcher.fail(error)
        with contextlib.suppress(ConnectionError):
            await response.write(watcher.take())
    finally:
        for timer in timers:
            timer.cancel()
        watcher.close()
        watchers.discard(watcher)
    with contextlib.suppress(ConnectionError):
        await response.write_eof()
    return response


def _line(resource: object, entry: Entry, encode: object, form: Form, include: str, with_columns: bool) -> bytes:
    line: bytes = encode(resource, ADDED, entry)  # type: ignore[operator]
    return _first_with_columns(line, resource) if with_columns else line


def _first_with_columns(data: bytes, resource: object) -> bytes:
    """The first event of a Table stream has the columns, the others do not."""
    first, newline, rest = data.partition(b"\n")
    event = orjson.loads(first)
    if event.get("object", {}).get("kind") == "Table":
        event["object"]["columnDefinitions"] = table.columns_of(resource)  # type: ignore[arg-type]
    return orjson.dumps(event) + newline + rest
