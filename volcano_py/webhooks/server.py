"""The webhook server: HTTPS on Volcano's paths, with limits for the size and the duration of requests, and for
connections (`connections`).

Small requests are evaluated in the event loop. A large one is evaluated in a thread with a time limit, so that it
delays no other request; beyond the limit the response is an error that recommends a smaller object.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from volcano_py.webhooks.connections import Connections, Limits, listener
from volcano_py.webhooks.paths import PATHS, AdmissionContext, Path
from volcano_py.webhooks.review import answer, answer_with_access

log = logging.getLogger(__name__)

MOST_BYTES = 1 << 20
"""An update contains the old and the new object: to allow updates of Jobs larger than 512 KiB, increase
`--max-request-bytes`.
"""
LONGEST = 1.0
"""Time limit of one response in seconds."""
AT_ONCE = 32 << 10
"""Maximum bytes of a request that is evaluated without a thread: it takes a few milliseconds at most."""
CONNECTIONS: web.AppKey[list[Connections]] = web.AppKey("connections", list)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REGISTRY = CollectorRegistry()
ANSWERS = Counter(
    "volcano_py_admission_answers_total", "Answers of the webhook server.", ["path", "code"], registry=REGISTRY
)


def application(
    context: Callable[[], AdmissionContext],
    enabled: Iterable[str],
    *,
    most_bytes: int = MOST_BYTES,
    longest: float = LONGEST,
    body_limit: float = Limits.body,
) -> web.Application:
    """The server's routes; `context` returns the current input of the rules."""
    app = web.Application(client_max_size=most_bytes, middlewares=[_counted])
    app[CONNECTIONS] = []
    threads = ThreadPoolExecutor(2, "admission")

    async def close(_: web.Application) -> None:
        threads.shutdown(wait=False, cancel_futures=True)

    app.on_cleanup.append(close)
    for path in enabled:
        app.router.add_post(path, _handler(PATHS[path], context, threads, longest, body_limit))
    return app


@web.middleware
async def _counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Report to the connection when a request begins and ends."""
    protocol, known = request.protocol, request.app[CONNECTIONS]
    for connections in known:
        connections.begin(protocol)
    try:
        return await handler(request)
    finally:
        for connections in known:
            connections.end(protocol)


def _handler(
    path: Path,
    context: Callable[[], AdmissionContext],
    threads: ThreadPoolExecutor,
    longest: float,
    body_limit: float,
) -> Callable[[web.Request], Awaitable[web.Response]]:
    counts = {code: ANSWERS.labels(path.path, code) for code in (200, 408, 413, 415, 500, 504)}

    def respond(code: int, *, text: str | None = None, body: bytes | None = None) -> web.Response:
        counts[code].inc()
        if body is not None:
            return web.Response(body=body, content_type="application/json")
        return web.Response(status=code, text=text)

    async def handle(request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return respond(415, text=f"unsupported Content-Type {request.content_type!r}; send application/json")
        try:
            async with asyncio.timeout(body_limit):
                body = await request.read()
        except TimeoutError:
            response = respond(408, text=f"the body was not complete within {body_limit:g} s")
            response.force_close()
            return response
        except web.HTTPRequestEntityTooLarge as error:
            return respond(413, text=f"the request is larger than {error.text or 'allowed'}; reduce the object's size")
        try:
            if path.access is not None:
                return respond(200, body=await asyncio.wait_for(answer_with_access(path, body, context()), longest))
            if len(body) <= AT_ONCE:
                return respond(200, body=answer(path, body, context()))
            loop = asyncio.get_running_loop()
            review = loop.run_in_executor(threads, answer, path, body, context())
            return respond(200, body=await asyncio.wait_for(review, longest))
        except TimeoutError:
            log.warning("%s: no response to %d bytes within %g s", path.path, len(body), longest)
            return respond(504, text=f"no response within {longest:g} s; reduce the object's size")
        except Exception:
            # An internal error; the failurePolicy of the webhook decides whether the API server allows the request.
            log.exception("%s failed", path.path)
            return respond(500, text="internal error; see the log of the webhook manager")

    return handle


@contextlib.asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
    grace: float = 0.0,
    limits: Limits = Limits(),
) -> AsyncIterator[int]:
    """Serve while the context is active, and up to `grace` seconds longer for open requests. Yields the port.

    Raises OSError if the address cannot be used.
    """
    # After an error the rest of a body is not awaited longer than a body may take.
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=grace, keepalive_timeout=limits.idle, lingering_time=limits.body
    )
    await runner.setup()
    try:
        with listener(host, port) as accepting:
            connections = Connections(runner, tls, limits)
            app[CONNECTIONS].append(connections)
            task = asyncio.create_task(connections.accept(accepting), name="webhook connections")
            try:
                yield accepting.getsockname()[1]
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await connections.close()
    finally:
        await runner.cleanup()
