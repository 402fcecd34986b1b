"""What kopf gets to read: answers of the API server without what would end kopf.

kopf decodes answers itself. An object nested about a thousand levels deep, HTML, a list where an object is expected or
an error on a watch raises inside its watcher, which then never runs again. Objects that it cannot decode are left out
here (`HandWatch` lists them, too, and reports them), and whatever is no answer at all makes kopf list and watch again.
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
"""The one error after which kopf lists again instead of giving up."""
SHORT_STREAM = 1.0
"""Seconds; a watch that ends sooner without a line was none."""


class CheckedResponse(aiohttp.ClientResponse):
    """A response whose `json` and `content` raise and hold only what kopf expects."""

    async def start(self, connection: Any) -> CheckedResponse:
        await super().start(connection)
        if self.status == 200 and self.url.query.get("watch") == "true":
            self.content = _Lines(self.content)  # type: ignore[assignment]
        return self

    async def json(self, **_: Any) -> Any:
        """The body as an object. Raises ClientPayloadError, or for a failed request JSONDecodeError: see the text."""
        body = await self.read()
        answer = _decoded(body)
        if isinstance(answer, dict):
            return answer
        if self.status >= 400:
            raise json.JSONDecodeError("no Status", "", 0)
        raise aiohttp.ClientPayloadError(f"the answer to {self.url.path} is no JSON object: {body[:40]!r}")


class _Lines:
    """The body of a watch, complete and usable lines only; otherwise like the StreamReader that it wraps."""

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
    """A JSON value, None if it is none; a list without the items that kopf cannot use."""
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
    """A list without the objects that are nested too deep; None if it is no list."""
    try:
        page, _ = wire.decode_list_lenient(body, None)
    except InvalidResponse:
        return None
    metadata = {"resourceVersion": page.resource_version, "continue": page.continue_token}
    return {"metadata": metadata, "items": [item for item in page if _identified(item)]}


def _checked(line: bytes) -> bytes:
    """The line of a watch that kopf may see."""
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
    """Whether it is an object with the metadata that kopf reads without looking."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    return isinstance(metadata, dict) and all(isinstance(metadata.get(key), str) for key in ("name", "uid"))
