"""/metrics and /healthz. Volcano: the endpoints of its scheduler."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from volcano_py.kube.health import Check, Health

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.Response]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextlib.asynccontextmanager
async def serving(
    *,
    metrics: tuple[str, Callable[[], bytes]] | None = None,
    healthz: tuple[str, Health | Check] | None = None,
    readyz: Check | None = None,
    ready_note: Check = lambda: "",
    tls: ssl.SSLContext | None = None,
    documents: Mapping[str, Callable[[], Any]] | None = None,
    debug: tuple[str, Mapping[str, Handler]] | None = None,
) -> AsyncIterator[dict[str, int]]:
    """Serve while the context is active; yields the ports by endpoint.

    `metrics`: address and the text to serve. `healthz`: address and the checks, or a single one; `readyz`: a check
    for /readyz on the same address, and `ready_note` what it adds to ok; `documents`: JSON documents by path, on the
    address of the metrics;
    `debug`: address and handlers by path, on the server of the metrics if the address is the same; `tls` applies to all
    of them. Raises OSError if an address cannot be used.
    """
    runners: list[web.AppRunner] = []
    ports: dict[str, int] = {}
    try:
        debug_address, debug_handlers = debug or ("", {})
        if metrics is not None:
            address, expose = metrics

            async def show(request: web.Request) -> web.Response:
                return web.Response(body=expose(), headers={"Content-Type": CONTENT_TYPE})

            shown = {path: _document(make) for path, make in (documents or {}).items()}
            added = debug_handlers if debug_address == address else {}
            ports["metrics"] = await _serve(runners, address, {"/metrics": show, **shown, **added}, tls)
        if debug_handlers and (metrics is None or debug_address != metrics[0]):
            ports["debug"] = await _serve(runners, debug_address, debug_handlers, tls)
        if healthz is not None:
            address, health = healthz
            probes = {"/healthz": _report(health) if isinstance(health, Health) else _probe(health)}
            if readyz is not None:
                probes["/readyz"] = _probe(readyz, ready_note)
            ports["healthz"] = await _serve(runners, address, probes, tls)
        yield ports
    finally:
        for runner in runners:
            await runner.cleanup()


def _document(make: Callable[[], Any]) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(make())

    return answer


def _report(health: Health) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        healthy, text = health.answer("verbose" in request.query)
        return web.Response(text=text, status=200 if healthy else 500)

    return answer


def _probe(check: Check, note: Check = lambda: "") -> Handler:
    async def answer(request: web.Request) -> web.Response:
        wrong, more = check(), note()
        return web.Response(text=wrong or (f"ok; {more}" if more else "ok"), status=500 if wrong else 200)

    return answer


async def _serve(
    runners: list[web.AppRunner], address: str, handlers: Mapping[str, Handler], tls: ssl.SSLContext | None
) -> int:
    app = web.Application()
    for path, handler in handlers.items():
        app.router.add_get(path, handler)
    path = " and ".join(handlers)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    runners.append(runner)
    host, port = split_address(address)
    try:
        await web.TCPSite(runner, host or None, port, ssl_context=tls).start()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise OSError(f"{path} cannot be served on {address} ({why}); choose another address") from None
    port = int(runner.addresses[0][1])
    log.info("%s %s served on %s", path, "are" if " and " in path else "is", f"{host or '*'}:{port}")
    return port


def split_address(address: str) -> tuple[str, int]:
    """`host:port`, `:port` or `[v6]:port`. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"address {address!r} must be host:port or :port")
    return host.strip("[]"), int(port)


def tls_context(ca: str, certificate: str, key: str) -> ssl.SSLContext | None:
    """TLS for /metrics and /healthz if all three files are set, else None; clients need no certificate."""
    if not (ca and certificate and key):
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    context.load_cert_chain(certificate, key)
    return context
