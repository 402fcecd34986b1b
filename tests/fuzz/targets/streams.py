"""Bytes on connections: HTTP/1.1 responses, watches in parts, and the frames between decider and dispatcher."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import msgspec

from tests.fuzz.target import Target
from volcano_py.kube.http1 import Answer, Connection, Malformed
from volcano_py.kube.scan import complete, elements, member, texts
from volcano_py.scheduler.dispatch import messages
from volcano_py.scheduler.dispatch.frames import InvalidFrame, Reader, encode
from volcano_py.scheduler.model.plan import Bind, Evict, PodCondition


class _Transport(asyncio.Transport):
    """A connection that swallows everything."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


async def _one_response(data: bytes) -> Answer:
    connection = Connection()
    connection.connection_made(_Transport())
    waiter = connection.send(b"GET / HTTP/1.1\r\n\r\n", 0.0)
    step = 1 + data[0] if data else 1
    for at in range(0, len(data), step):
        connection.data_received(data[at : at + step])
    connection.connection_lost(None)
    assert waiter.done()
    return await waiter


def _http(data: bytes) -> None:
    """A response in parts of a size that its first byte gives, and then the end of the connection."""
    answer = _loop().run_until_complete(_one_response(data))
    assert 200 <= answer.status <= 999


def _frames(union: Any, data: bytes) -> None:
    reader = Reader(union)
    half = len(data) // 2
    for part in (data[:half], data[half:]):
        for message in reader.feed(part):
            assert isinstance(message, msgspec.Struct)


def _scan(data: bytes) -> None:
    """The reader of identities in objects that cannot be decoded."""
    texts(data, "metadata")
    complete(data)
    member(data, "items")
    for _ in elements(data):
        pass


def targets() -> list[Target]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    responses = [
        head + b"Content-Length: 2\r\n\r\n{}",
        head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        head + b"\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n" + head + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b"HTTP/1.0 204 No Content\r\n\r\n",
    ]
    plan = messages.Plan(
        1,
        1,
        [
            Bind("default", "p", "u", "n", "default/g"),
            Evict("default", "p", "u", "default/g", "preempt"),
            PodCondition("default", "p", "u", "Unschedulable", "m"),
        ],
    )
    to_dispatcher = [
        encode(one)
        for one in (
            plan,
            messages.Heartbeat(),
            messages.Stop(),
            messages.Revoke("Node", "n"),
            messages.SetLogLevel("INFO"),
        )
    ]
    results = messages.Results([messages.Result(1, "done", "", 0.1, 0.2)])
    to_decider = [encode(one) for one in (results, messages.Leading(True, "x", 5), messages.Heartbeat("p"))]
    objects = [b'{"metadata":{"name":"x","uid":"u"},"items":[{"a":[1,"]"]},{"metadata":{}}],"s":"\\u00e9\\n"}']
    return [
        Target("HTTP/1.1 response", _http, (Malformed, ConnectionError), responses, "bytes"),
        Target(
            "frames to the dispatcher",
            lambda data: _frames(messages.FromDecider, data),
            (InvalidFrame,),
            [*to_dispatcher, b"".join(to_dispatcher)],
            "bytes",
        ),
        Target(
            "frames to the decider",
            lambda data: _frames(messages.FromDispatcher, data),
            (InvalidFrame,),
            [*to_decider, b"".join(to_decider)],
            "bytes",
        ),
        Target("identity of undecodable objects", _scan, (), objects, "json"),
    ]
