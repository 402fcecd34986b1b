"""Answers that no API server should give, as raw bytes, and how they are sent.

Each one has been seen from a broken load balancer, a captive portal or a server that ran out of memory.
"""

from __future__ import annotations

import asyncio

LIES = ("html", "empty", "truncated", "list", "negative-chunk", "no-body", "deep-error", "silence")
"""html            200 and a page
empty           200, Content-Length 0
truncated       200 and the first half of the true answer, as if that were all
list            200 and `[]`
negative-chunk  200, chunked, and a chunk of -5 bytes
no-body         200, the connection ends before the body that Content-Length announces
deep-error      500 and a Status nested 1,200 levels deep
silence         no answer at all until the client gives up"""

NEEDS_THE_TRUTH = frozenset({"truncated"})
DEPTH = 1_200


def head(status: int, content_type: str, length: int | None) -> bytes:
    """The head of an answer; a `length` of None means chunks."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"HTTP/1.1 {status} OK\r\nContent-Type: {content_type}\r\n{size}\r\n\r\n".encode()


def whole(status: int, body: bytes, content_type: str = "application/json") -> bytes:
    """An answer in one piece."""
    return head(status, content_type, len(body)) + body


async def send(lie: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, truth: bytes = b"") -> None:
    """Send one of LIES; the connection cannot be used afterwards. `truth`: the true body, for `truncated`."""
    match lie:
        case "html":
            page = b"<html><body><h1>It works!</h1></body></html>\n"
            writer.write(whole(200, page, "text/html"))
        case "empty":
            writer.write(whole(200, b""))
        case "truncated":
            writer.write(whole(200, truth[: len(truth) // 2] or b'{"kind":"Po'))
        case "list":
            writer.write(whole(200, b"[]\n"))
        case "negative-chunk":
            writer.write(head(200, "application/json", None) + b"-5\r\n{}\r\n\r\n-5\r\n")
            await writer.drain()
            # Kept open: a reader that waits for the end of this chunk must not wait for ever.
            await reader.read()
        case "no-body":
            writer.write(head(200, "application/json", 512))
        case "deep-error":
            deep = (
                b'{"kind":"Status","code":500,"message":"no","details":' + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}"
            )
            writer.write(whole(500, deep))
        case "silence":
            await reader.read()
        case _:
            raise ValueError(f"there is no lie {lie!r}")
    await writer.drain()
