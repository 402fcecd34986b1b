"""One run of kopf, in a separate thread: at its end, kopf cancels all tasks of its event loop.

It only watches (`kopf.on.event`): it writes no annotations, finalizers or Events. When one of its tasks fails, the run
ends, because kopf itself would continue without that task; `KopfWatch` starts the next run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import aiohttp

from volcano_py.api.kinds import ResourceType
from volcano_py.controllers.kopf_responses import CheckedResponse
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.watch import INACTIVITY

log = logging.getLogger(__name__)

MOST_WAITING = 1_000
"""Events that wait for the controllers' event loop; others wait in kopf, which keeps the newest of each object."""
GRACE_SECONDS = 2.0
"""Seconds for kopf's tasks to end after they were cancelled, before they are cancelled again."""
STOP_SECONDS = 10.0
"""Maximum seconds to wait for the end of kopf."""
REQUEST_SECONDS = 30.0
RECONNECT_SECONDS = 1.0
"""Seconds between two watches of a kind, and before a list after a broken one."""
LOGIN_SECONDS = 5.0
"""Seconds between two sessions: kopf requests a new one at each 401, without a pause."""
_UNNAMED = re.compile(r"Task-\d+")
"""Tasks of libraries for attempts that may fail, such as one address of several; all tasks of kopf have names."""


class Sink(Protocol):
    """Receives changes of the objects of one kind, in the event loop that created the thread."""

    def seen(self, manifest: dict[str, Any], *, gone: bool = False) -> None:
        """An object exists, or was deleted."""


def can_watch(credentials: Credentials) -> bool:
    """Whether kopf supports these credentials: it has no option for another TLS server name."""
    return credentials.server_hostname is None


class KopfThread:
    """One run of kopf."""

    def __init__(self, credentials: Credentials, feeds: Mapping[ResourceType, Sink]) -> None:
        self.ended = asyncio.Event()
        self.failure: BaseException | None = None
        self._credentials = credentials
        self._feeds = feeds
        self._loop = asyncio.get_running_loop()
        self._handed = self._taken = 0
        """Events for the controllers' event loop, and those that it has taken; it changes only the second."""
        self._stop = threading.Event()
        self._running: tuple[asyncio.AbstractEventLoop | None, asyncio.Task[Any] | None] = (None, None)
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """End the run, and wait for the end."""
        self._end()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.shield(self.ended.wait())
        except TimeoutError:
            log.warning("kopf has not ended within %g s", STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except asyncio.CancelledError:
            log.debug("kopf was ended")
        except BaseException as error:
            self.failure = self.failure or error
        finally:
            self._hand_over(self.ended.set)

    async def _operate(self) -> None:
        self._running = asyncio.get_running_loop(), asyncio.current_task()
        import kopf  # 0.6 s and 60 MB: import it only if it is used

        logging.getLogger("kopf").setLevel(logging.CRITICAL)  # the caller logs a failed task once
        registry = kopf.OperatorRegistry()
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.persistence.finalizer = "volcano.sh/never-set"
        settings.queueing.idle_timeout = 0.5
        settings.networking.request_timeout = REQUEST_SECONDS
        settings.watching.inactivity_timeout = INACTIVITY
        settings.watching.reconnect_backoff = RECONNECT_SECONDS

        logged_in = float("-inf")

        async def login(**_: Any) -> Any:
            nonlocal logged_in
            loop = asyncio.get_running_loop()
            await asyncio.sleep(logged_in + LOGIN_SECONDS - loop.time())
            logged_in = loop.time()
            return kopf.AiohttpSession(server=self._credentials.server, aiohttp_session=session_for(self._credentials))

        kopf.on.login(registry=registry)(login)
        for rt, feed in self._feeds.items():
            kopf.on.event(rt.group, rt.version, rt.plural, id=rt.plural, registry=registry)(self._handler(feed))
        self._watch_tasks()
        if self._stop.is_set():
            return
        try:
            await kopf.operator(
                registry=registry, settings=settings, clusterwide=True, standalone=True, stop_flag=self._stop
            )
        finally:
            self._stop.set()  # kopf waits for it in a thread, which the event loop awaits at its end

    def _watch_tasks(self) -> None:
        """Observe every task of kopf that fails from now on."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()

        def make(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
            task = before(loop, coro, **options) if before else asyncio.Task(coro, loop=loop, **options)
            task.add_done_callback(self._task_ended)
            return task

        loop.set_task_factory(make)

    def _task_ended(self, task: Any) -> None:
        if task.cancelled() or task.exception() is None or _UNNAMED.fullmatch(task.get_name()):
            return
        self.failure = self.failure or task.exception()
        self._end()

    def _end(self) -> None:
        """Cancelled, kopf cancels all of its tasks; with only its stop flag it would wait up to five seconds."""
        self._stop.set()
        loop, task = self._running
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended
                loop.call_soon_threadsafe(task.cancel)
                loop.call_soon_threadsafe(loop.call_later, GRACE_SECONDS, self._cancel_all)

    def _cancel_all(self) -> None:
        """At its end, kopf can wait for tasks that wait for already ended ones."""
        for task in asyncio.all_tasks():
            task.cancel()
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cancel_all)

    def _handler(self, feed: Sink) -> Callable[..., Any]:
        async def seen(event: Any, **_: Any) -> None:
            # a copy: kopf continues to use the original
            manifest = dict(event["object"])
            while self._handed - self._taken >= MOST_WAITING and not self._stop.is_set():
                await asyncio.sleep(0.01)
            self._handed += 1
            self._hand_over(partial(self._take, feed, manifest, event["type"] == "DELETED"))

        return seen

    def _take(self, feed: Sink, manifest: dict[str, Any], gone: bool) -> None:
        self._taken += 1
        feed.seen(manifest, gone=gone)

    def _hand_over(self, work: Callable[[], None]) -> None:
        """Run it in the controllers' event loop."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            log.debug("the controllers' event loop is closed")


def session_for(credentials: Credentials) -> aiohttp.ClientSession:
    """An aiohttp session with these credentials, for the running event loop.

    The token is the current one. When the server rejects it, kopf requests a new session.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=credentials.ssl or True, limit=0),
        headers=credentials.headers(),
        proxy=credentials.proxy,
        response_class=CheckedResponse,
    )
