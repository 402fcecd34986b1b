"""Who may reach the dashboard: an ASGI layer before everything else, for requests and WebSockets.

It acts with the rights of a kubeconfig, so a web page that the user visits must not reach it. The Host header is an IP
address, localhost or an allowed name, which stops DNS rebinding; an Origin header names the same host, which stops
other sites; no site may frame it. Where a token is set, a request carries it as a cookie, which the address with
`?token=` sets.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS = (
    # Vue compiles templates in the browser, which requires unsafe-eval; nothing is loaded from elsewhere.
    (
        b"content-security-policy",
        b"default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        b"style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Guard:
    """Lets a request through to `app`, or answers it. `hosts`: names beside localhost; `token`: empty for none."""

    def __init__(self, app: App, hosts: Collection[str] = (), token: str = "") -> None:
        self.app = app
        self._hosts = frozenset(host.lower() for host in hosts) | {"localhost"}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        wrong = self._wrong(headers)
        if wrong:
            await _answer(scope, send, 403, wrong)
            return
        if self._token:
            query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
            if scope["type"] == "http" and hmac.compare_digest(query.pop("token", "").encode(), self._token.encode()):
                await self._enter(scope, send, query)
                return
            if not hmac.compare_digest(self._cookie(headers, scope).encode(), self._token.encode()):
                text = "This dashboard requires a token; open the address that `volcano-py dashboard` printed."
                await _answer(scope, send, 401, text)
                return
        await self.app(scope, receive, _with_headers(send))

    def _wrong(self, headers: dict[str, str]) -> str:
        host = headers.get("host", "")
        if not self._allowed(_name(host)):
            return f"The host {_name(host)!r} is not allowed; start the dashboard with --allow-host {_name(host)}."
        origin = headers.get("origin", "")
        if origin and urlsplit(origin).netloc.lower() != host.lower():
            return f"Requests from the site {origin!r} are not allowed."
        return ""

    def _allowed(self, name: str) -> bool:
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return True

    def _cookie(self, headers: dict[str, str], scope: Scope) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
        except CookieError:
            return ""
        return found.value if found is not None else ""

    async def _enter(self, scope: Scope, send: Send, query: dict[str, str]) -> None:
        """Exchange the token of an address for a cookie."""
        # quoted: a backslash would lead to another site, and a line break into the headers
        where = "/" + quote(scope["path"].lstrip("/")) + (f"?{urlencode(query)}" if query else "")
        cookie = f"{_cookie_name(scope)}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        more = [(b"location", where.encode()), (b"set-cookie", cookie.encode())]
        await _answer(scope, send, 303, "", more)


def _name(host: str) -> str:
    """The name of a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.rpartition(":")[2].isdigit() and ":" in host else host.lower()


def _cookie_name(scope: Scope) -> str:
    """One for each port: browsers send a cookie to all ports of a host."""
    server = scope.get("server") or ("", 0)
    return f"volcano-dashboard-{server[1]}"


async def _answer(scope: Scope, send: Send, status: int, text: str, more: Collection[tuple[bytes, bytes]] = ()) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS, *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
        await send(message)

    return sending
