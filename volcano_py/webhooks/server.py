"""The webhook server: HTTPS on Volcano's paths. How much is read and how long a request may take is bounded.

Small requests are reviewed at once. A large one is reviewed in a thread with a time limit, where it delays no other
request; past the limit the answer is an error that asks for a smaller object.
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

from volcano_py.webhooks.paths import PATHS, Path, Surroundings
from volcano_py.webhooks.review import answer

log = logging.getLogger(__name__)

MOST_BYTES = 1 << 20
"""A change is asked about with the object before and after it: where Jobs of more than 512 KiB are changed,
`--max-request-bytes` has to be more.
"""
LONGEST = 1.0
"""Seconds for one answer."""
AT_ONCE = 32 << 10
"""Bytes up to which a request is judged without a thread: the slowest such request costs some milliseconds."""
REGISTRY = CollectorRegistry()
ANSWERS = Counter(
    "volcano_py_admission_answers_total", "Answers of the webhook server.", ["path", "code"], registry=REGISTRY
)


def application(
    around: Callable[[], Surroundings],
    enabled: Iterable[str],
    *,
    most_bytes: int = MOST_BYTES,
    longest: float = LONGEST,
) -> web.Application:
    """The server's routes; `around` gives what the rules may look at, as of now."""
    app = web.Application(client_max_size=most_bytes)
    threads = ThreadPoolExecutor(2, "admission")

    async def close(_: web.Application) -> None:
        threads.shutdown(wait=False, cancel_futures=True)

    app.on_cleanup.append(close)
    for path in enabled:
        app.router.add_post(path, _handler(PATHS[path], around, threads, longest))
    return app


def _handler(
    path: Path, around: Callable[[], Surroundings], threads: ThreadPoolExecutor, longest: float
) -> Callable[[web.Request], Awaitable[web.Response]]:
    counts = {code: ANSWERS.labels(path.path, code) for code in (200, 413, 415, 500, 504)}

    def respond(code: int, *, text: str | None = None, body: bytes | None = None) -> web.Response:
        counts[code].inc()
        if body is not None:
            return web.Response(body=body, content_type="application/json")
        return web.Response(status=code, text=text)

    async def handle(request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return respond(415, text=f"Content-Type {request.content_type!r} is not read here; send application/json")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            return respond(413, text=f"the request is larger than {error.text or 'allowed'}; make the object smaller")
        try:
            if len(body) <= AT_ONCE:
                return respond(200, body=answer(path, body, around()))
            loop = asyncio.get_running_loop()
            judged = loop.run_in_executor(threads, answer, path, body, around())
            return respond(200, body=await asyncio.wait_for(judged, longest))
        except TimeoutError:
            log.warning("%s: no answer to %d bytes within %g s", path.path, len(body), longest)
            return respond(504, text=f"no answer within {longest:g} s; make the object smaller")
        except Exception:
            # A mistake of ours; the failurePolicy of the webhook says what becomes of the object.
            log.exception("%s failed", path.path)
            return respond(500, text="the rules failed; the log of the webhook manager says where")

    return handle


@contextlib.asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, tls: ssl.SSLContext | None, grace: float = 0.0
) -> AsyncIterator[int]:
    """Serve while the context lasts, and up to `grace` seconds longer what is under way; gives the port.

    Raises OSError when the address cannot be used.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=grace)
    await runner.setup()
    try:
        await web.TCPSite(runner, host or None, port, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
