"""Watching: a stream of lines into events.

Events come in blocks (all lines of what the socket held), so that 60,000 a second cost no task switch each. A
line whose object does not fit the wanted type becomes a `Refused`, and the stream goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from volcano_py.kube import wire
from volcano_py.kube.errors import KubeError, from_status

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

T = TypeVar("T")


class WatchEvent(msgspec.Struct, Generic[T]):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` a Struct, a dict, or `wire.Refused`."""

    type: str
    object: T


class StreamBroken(KubeError):
    """The stream carried something that is no watch event; reconnect."""


_raw = msgspec.json.Decoder(WatchEvent[msgspec.Raw])


@lru_cache(maxsize=256)
def _decoder(type_: Any) -> Any:
    return msgspec.json.Decoder(WatchEvent[Any if type_ is None else type_])  # type: ignore[misc]


async def watch_blocks(
    client: Client,
    path: str,
    params: Mapping[str, Any],
    *,
    resource_version: str | None = None,
    type_: Any = None,
    timeout_seconds: int | None = None,
    inactivity: float = 90.0,
    bookmarks: bool = True,
    on_open: Callable[[], None] | None = None,
) -> AsyncIterator[list[WatchEvent[Any]]]:
    """Events in lists, as they arrive. Ends when the server ends the stream.

    Raises Gone (the version is too old: list again), other ApiErrors, and Unreachable (lost, or silent for
    `inactivity` seconds). A last line that was cut off is dropped: the watch resumes before it.
    """
    query: dict[str, Any] = dict(params, watch="true")
    if bookmarks:
        query["allowWatchBookmarks"] = "true"
    if resource_version:
        query["resourceVersion"] = resource_version
    if timeout_seconds:
        query["timeoutSeconds"] = timeout_seconds
    tail: list[bytes] = []
    async with client.stream(path, query, inactivity) as reader:
        if on_open is not None:
            on_open()
        while chunk := await reader.readany():
            # Parts of a line are collected and joined once: a huge object in small chunks stays linear.
            end = chunk.rfind(b"\n")
            if end < 0:
                tail.append(chunk)
                continue
            tail.append(chunk[:end])
            lines = b"".join(tail).split(b"\n")
            tail = [chunk[end + 1 :]] if end + 1 < len(chunk) else []
            yield [decode_event(line, type_) for line in lines if line]


async def watch_events(client: Client, path: str, params: Mapping[str, Any], **options: Any) -> AsyncIterator[Any]:
    """The events of `watch_blocks` one by one, without bookmarks."""
    async for block in watch_blocks(client, path, params, **options):
        for event in block:
            if event.type != "BOOKMARK":
                yield event


def decode_event(line: bytes, type_: Any) -> WatchEvent[Any]:
    """One line of a watch. Raises the ApiError of an ERROR event, StreamBroken for anything that is no
    event.
    """
    try:
        event = _decoder(type_).decode(line)
        if event.type != "ERROR":
            return event
    except msgspec.ValidationError as failure:
        problem: Exception = failure
    except msgspec.DecodeError as failure:
        raise StreamBroken(f"a watch sent a line that is not JSON: {failure}") from failure
    else:
        problem = ValueError("ERROR")
    try:
        raw = _raw.decode(line)
    except msgspec.DecodeError as failure:
        raise StreamBroken(f"a watch sent a line that is no event: {failure}") from failure
    if raw.type == "ERROR":
        raise from_status(500, msgspec.json.decode(raw.object))
    return WatchEvent(raw.type, wire.refuse(bytes(raw.object), problem))
