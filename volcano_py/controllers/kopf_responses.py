"""Filters the API server's responses for kopf: removes content that would end its watcher.

kopf decodes responses itself. An object nested about a thousand levels deep, HTML, a list instead of an object, or
an error in a watch raises inside its watcher, which then stops for good. Objects that it cannot decode are left out
here (`KopfWatch` lists them, too, and reports them), and after any other invalid response kopf lists and watches again.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from volcano_py.kube import wire
from volcano_py.kube.errors import InvalidResponse

GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n'
"""The only error after which kopf lists again instead of failing."""
SHORT_STREAM = 1.0
"""Seconds; a watch that ends earlier without a line was not a watch."""


class CheckedResponse(aiohttp.ClientResponse):
    """A response whose `json` and `content` only return and raise what kopf supports."""

    async def start(self, connection: Any) -> CheckedResponse:
        await super().start(connection)
        if self.status == 200 and self.url.query.get("watch") == "true":
            self.content = _Lines(self.content)  # type: ignore[assignment]
        return self

    async def json(self, **_: Any) -> Any:
        """The body as an object. Raises ClientPayloadError; for a failed request JSONDecodeError."""
        body = await self.read()
        answer = _decoded(body)
        if isinstance(answer, dict):
            return answer
        if self.status >= 400:
            raise json.JSONDecodeError("no Status", "", 0)
        raise aiohttp.ClientPayloadError(f"the response of {self.url.path} is not a JSON object: {body[:40]!r}")


class _Lines:
    """The body of a watch with only complete and valid lines; otherwise like the StreamReader that it wraps."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        opened, empty = time.monotonic(), True
        tail: list[bytes] = []
        async for data in self._content.iter_chunked(size):
            if b"\n" not in data:
                tail.append(data)
                continue
            *lines, rest = b"".join((*tail, data)).split(b"\n")
            tail, empty = [rest], False
            if usable := b"".join(_checked(line) for line in lines if line):
                yield usable
        if empty and time.monotonic() - opened < SHORT_STREAM:
            yield GONE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)


def _decoded(body: bytes) -> Any:
    """A JSON value, None if it is invalid; a list without the items that kopf cannot decode."""
    try:
        answer = json.loads(body)
    except RecursionError:
        return _shallow(body)
    except ValueError:
        return None
    if isinstance(answer, dict) and "items" in answer:
        items = answer["items"] if isinstance(answer["items"], list) else []
        answer["items"] = [item for item in items if _identified(item)]
    return answer


def _shallow(body: bytes) -> Any:
    """A list without the objects that are nested too deep; None if it is not a list."""
    try:
        page, _ = wire.decode_list_lenient(body, None)
    except InvalidResponse:
        return None
    metadata = {"resourceVersion": page.resource_version, "continue": page.continue_token}
    return {"metadata": metadata, "items": [item for item in page if _identified(item)]}


def _checked(line: bytes) -> bytes:
    """The line of a watch as passed to kopf."""
    try:
        event = json.loads(line)
    except RecursionError:
        return b""
    except ValueError:
        return GONE
    if not isinstance(event, dict) or event.get("type") not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        return GONE
    if event["type"] == "BOOKMARK":
        return line + b"\n" if isinstance(event.get("object"), dict) else GONE
    return line + b"\n" if _identified(event.get("object")) else b""


def _identified(obj: Any) -> bool:
    """Whether it is an object with the metadata that kopf reads without checking."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    return isinstance(metadata, dict) and all(isinstance(metadata.get(key), str) for key in ("name", "uid"))
