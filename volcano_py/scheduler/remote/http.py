"""An HTTP call with limits on its duration and on the size of the response. Volcano: the http.Client of its extender
and metrics sources."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any

import aiohttp
import orjson

MAX_BYTES = 10 * 1024 * 1024
"""The maximum size of a response."""


class CallError(Exception):
    """A call failed; the message gives the reason, without the URL."""


class CallTimeoutError(CallError):
    """No complete response arrived within the timeout."""


async def call(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    timeout: float,
    *,
    data: bytes | None = None,
    params: dict[str, str] | None = None,
    auth: aiohttp.BasicAuth | None = None,
    verify: bool | ssl.SSLContext = True,
) -> bytes:
    """The body of a response with status 200. Raises CallError for any other outcome."""
    headers = {"Content-Type": "application/json"} if data is not None else None
    try:
        async with (
            asyncio.timeout(timeout),
            session.request(
                method, url, data=data, params=params, auth=auth, headers=headers, ssl=verify, allow_redirects=False
            ) as response,
        ):
            if response.status != 200:
                raise CallError(f"status {response.status}")
            body = bytearray()
            async for chunk in response.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise CallError(f"the response is larger than {MAX_BYTES >> 20} MiB")
            return bytes(body)
    except TimeoutError:
        raise CallTimeoutError(f"no response within {timeout:g} s") from None
    except (aiohttp.ClientError, ValueError, OSError) as e:
        raise CallError(f"{type(e).__name__}: {e}") from None


def decoded(body: bytes) -> Any:
    """A JSON response; None if it is empty. Raises CallError for invalid JSON."""
    if not body.strip():
        return None
    try:
        return orjson.loads(body)
    except (json.JSONDecodeError, RecursionError) as e:
        raise CallError(f"the response is not valid JSON: {e}") from None
