"""Watching: converts a stream of lines to events.

Events are delivered in blocks (all complete lines of one read), so that 60,000 per second need no task switch each. A
line with an object that does not match the requested type becomes an `Undecodable`, and the stream continues.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import aiohttp
import msgspec

from volcano_py.kube import scan, wire
from volcano_py.kube.errors import UNDECODABLE, KubeError, from_response

T = TypeVar("T")

INACTIVITY = 45.0
"""Seconds without data after which a watch is reopened. A kube-apiserver sends a bookmark about once a minute,
and none for a kind without changes: reopening is normal then and costs one request.
"""
MAX_LINE = 1 << 26
"""Maximum bytes of one event; an API server stores no object above a few MiB."""


class WatchEvent(msgspec.Struct, Generic[T]):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` a Struct, a dict, or `wire.Undecodable`."""

    type: str
    object: T


class Streaming(Protocol):
    """What a watch needs of a client: a GET with a streamed response."""

    def stream(
        self, path: str, params: Mapping[str, Any] | None = None, inactivity: float | None = None
    ) -> AbstractAsyncContextManager[aiohttp.StreamReader]: ...


class StreamBroken(KubeError):
    """The stream contained a line that is not a watch event; reconnect."""


_raw = msgspec.json.Decoder(WatchEvent[msgspec.Raw])


@lru_cache(maxsize=256)
def _decoder(type_: Any) -> Any:
    return msgspec.json.Decoder(WatchEvent[dict if type_ is None else type_])  # type: ignore[misc]


async def watch_blocks(
    client: Streaming,
    path: str,
    params: Mapping[str, Any],
    *,
    resource_version: str | None = None,
    type_: Any = None,
    timeout_seconds: int | None = None,
    inactivity: float = INACTIVITY,
    bookmarks: bool = True,
    on_open: Callable[[], None] | None = None,
) -> AsyncIterator[list[WatchEvent[Any]]]:
    """Events in lists, as they arrive. Ends when the server ends the stream.

    Raises Gone (the version is too old: list again), other ApiErrors, and Unreachable (lost, or silent for
    `inactivity` seconds). A truncated last line is dropped: the watch resumes before it.
    """
    query: dict[str, Any] = dict(params, watch="true")
    if bookmarks:
        query["allowWatchBookmarks"] = "true"
    if resource_version:
        query["resourceVersion"] = resource_version
    if timeout_seconds:
        query["timeoutSeconds"] = timeout_seconds
    tail: list[bytes] = []
    waiting = 0
    async with client.stream(path, query, inactivity) as reader:
        if on_open is not None:
            on_open()
        while chunk := await reader.readany():
            # Parts of a line are collected and joined once, so that a huge object in small chunks takes linear time.
            end = chunk.rfind(b"\n")
            if end < 0:
                tail.append(chunk)
                waiting += len(chunk)
                if waiting > MAX_LINE:
                    raise StreamBroken(f"a watch sent a line of more than {MAX_LINE >> 20} MiB")
                continue
            tail.append(chunk[:end])
            lines = b"".join(tail).split(b"\n")
            tail = [chunk[end + 1 :]] if end + 1 < len(chunk) else []
            waiting = len(chunk) - end - 1
            yield [decode_event(line, type_) for line in lines if line]


async def watch_events(client: Streaming, path: str, params: Mapping[str, Any], **options: Any) -> AsyncIterator[Any]:
    """The events of `watch_blocks` one by one, without bookmarks."""
    async for block in watch_blocks(client, path, params, **options):
        for event in block:
            if event.type != "BOOKMARK":
                yield event


def decode_event(line: bytes, type_: Any) -> WatchEvent[Any]:
    """One line of a watch.

    Raises the ApiError of an ERROR event, and StreamBroken for anything else that is not an event.
    """
    try:
        event = _decoder(type_).decode(line)
        if event.type != "ERROR":
            decoded: WatchEvent[Any] = event
            return decoded
        problem: Exception = ValueError("ERROR")
    except UNDECODABLE as failure:
        problem = failure
    kind, raw = _envelope(line)
    if kind == "ERROR":
        raise from_response(500, raw)
    found = wire.undecodable(raw, problem)
    # With the place as in a list, so that the same object is not reported again after a new list.
    found.error = found.error.replace("`$.object", "`$")
    return WatchEvent(kind, found)


def _envelope(line: bytes) -> tuple[str, bytes]:
    """Type and object of an event whose object cannot be decoded."""
    try:
        event = _raw.decode(line)
        return event.type, bytes(event.object)
    except RecursionError:
        kind = scan.texts(line).get("type", "")
        raw = scan.member(line, "object")
        if kind and raw:
            return kind, raw
        failure: Exception = ValueError("nested too deep")
    except UNDECODABLE as error:
        failure = error
    raise StreamBroken(f"a watch sent a line that is not an event: {failure}") from None
