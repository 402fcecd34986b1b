"""Watches with kopf the kinds that are few and change by hand: JobFlow, JobTemplate, CronJob, ColocationConfiguration.

kopf runs in a thread of its own, because it takes all tasks of its event loop for its own when it ends. It only watches
(`kopf.on.event`): it puts no annotations, finalizers or Events on anybody's objects. What it sees goes to the
controllers' event loop, where a `HandFeed` stands in for an informer.

kopf does not tell which objects were deleted while its stream was broken: we list the kinds ourselves before it starts
and once a minute.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec

from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import ApiObject
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import KubeError

T = TypeVar("T", bound=ApiObject)
log = logging.getLogger(__name__)

KINDS = (kinds.JOBFLOW, kinds.JOBTEMPLATE, kinds.CRONJOB, kinds.COLOCATIONCONFIGURATION)
LIST_SECONDS = 60.0
"""Between two lists of ours."""
STOP_SECONDS = 10.0
"""For which we wait until kopf has ended."""


def can_watch(credentials: Credentials) -> bool:
    """Whether kopf's requests can be given these credentials: it cannot be told another name for TLS."""
    return credentials.server_hostname is None


class HandFeed(Generic[T]):
    """One kind: what an informer offers to a Mirror, fed by kopf and by lists."""

    def __init__(self, rt: ResourceType, struct: type[T]) -> None:
        self.rt = rt
        self.store: dict[str, T] = {}
        self.synced = asyncio.Event()
        self._struct = struct
        self._add: list[Callable[[T], None]] = []
        self._update: list[Callable[[T, T], None]] = []
        self._delete: list[Callable[[T], None]] = []

    def on(
        self,
        add: Callable[[T], None] | None = None,
        update: Callable[[T, T], None] | None = None,
        delete: Callable[[T], None] | None = None,
    ) -> HandFeed[T]:
        """Call `add(new)`, `update(old, new)`, `delete(last known)` after the store has changed."""
        if add is not None:
            self._add.append(add)
        if update is not None:
            self._update.append(update)
        if delete is not None:
            self._delete.append(delete)
        return self

    def seen(self, manifest: dict[str, Any], *, gone: bool = False) -> None:
        """An object as the server had it, now or a while ago: older news than what is known are dropped."""
        try:
            obj = from_manifest(self._struct, manifest)
        except msgspec.ValidationError as error:
            metadata = manifest.get("metadata") or {}
            log.error("%s %s/%s: %s", self.rt.kind, metadata.get("namespace", ""), metadata.get("name", ""), error)
            return
        old = self.store.get(obj.key)
        if gone:
            if old is not None and old.metadata.uid == obj.metadata.uid:
                self._drop(old)
            return
        if old is not None and _version(obj) <= _version(old):
            return
        if old is not None and old.metadata.uid != obj.metadata.uid:
            self._drop(old)
            old = None
        self.store[obj.key] = obj
        if old is None:
            _call(self._add, obj)
        else:
            _call(self._update, old, obj)

    def listed(self, manifests: Iterable[dict[str, Any]], version: str) -> None:
        """Everything there was at a version of the cluster; what was not, and is not newer, is gone."""
        there = set()
        for manifest in manifests:
            there.add(manifest["metadata"]["uid"])
            self.seen(manifest)
        for obj in list(self.store.values()):
            if obj.metadata.uid not in there and _version(obj) <= int(version or 0):
                self._drop(obj)
        self.synced.set()

    def _drop(self, obj: T) -> None:
        del self.store[obj.key]
        _call(self._delete, obj)


def _version(obj: ApiObject) -> int:
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _call(handlers: list[Any], *args: Any) -> None:
    for handler in handlers:
        try:
            handler(*args)
        except Exception:
            log.exception("a handler failed on %s", args[-1].key)


class HandWatch:
    """All kinds that are watched by kopf. `run` is for the time of leadership."""

    def __init__(self, client: Client) -> None:
        self.feeds: dict[ResourceType, HandFeed[Any]] = {}
        self.thread: KopfThread | None = None
        """The present run of kopf."""
        self._client = client

    def feed(self, rt: ResourceType) -> HandFeed[Any]:
        """The feed of a kind. Ask before `run`."""
        if rt not in self.feeds:
            self.feeds[rt] = HandFeed(rt, kinds.STRUCTS[rt])
        return self.feeds[rt]

    async def run(self) -> None:
        """List and watch until cancelled; kopf has ended then. Never raises because of the server."""
        backoff = Backoff()
        await asyncio.gather(*(self._list_patiently(feed) for feed in self.feeds.values()))
        while True:
            thread = self.thread = KopfThread(self._client.credentials, self.feeds)
            try:
                thread.start()
                await self._beside(thread)
                backoff.reset()
            finally:
                await thread.stop()
            log.warning("kopf has ended (%s); starting it again", thread.failure or "nobody knows why")
            await asyncio.sleep(backoff.next())

    async def _beside(self, thread: KopfThread) -> None:
        """While kopf runs, list from time to time."""
        while True:
            try:
                async with asyncio.timeout(LIST_SECONDS):
                    await thread.ended.wait()
                return
            except TimeoutError:
                for feed in self.feeds.values():
                    try:
                        await self._list(feed)
                    except KubeError as error:
                        log.debug("%s: %s", feed.rt.plural, error)

    async def _list_patiently(self, feed: HandFeed[Any]) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._list(feed)
                return
            except KubeError as error:
                level = logging.WARNING if backoff.failures in (0, 10, 100) else logging.DEBUG
                log.log(level, "%s: %s; trying again", feed.rt.plural, error)
                await asyncio.sleep(backoff.next())

    async def _list(self, feed: HandFeed[Any]) -> None:
        manifests: list[dict[str, Any]] = []
        version = ""
        async for page in self._client.pages(feed.rt):
            manifests += page
            version = version or page.resource_version
        feed.listed(manifests, version)


class KopfThread:
    """One run of kopf."""

    def __init__(self, credentials: Credentials, feeds: dict[ResourceType, HandFeed[Any]]) -> None:
        self.ended = asyncio.Event()
        self.failure: BaseException | None = None
        self._credentials = credentials
        self._feeds = feeds
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """End it, and wait for that."""
        self._stop.set()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.shield(self.ended.wait())
        except TimeoutError:
            log.warning("kopf has not ended within %g s", STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:
            self.failure = error
        finally:
            self._hand_over(self.ended.set)

    async def _operate(self) -> None:
        import kopf  # 0.6 s and 60 MB: only for those who watch with it

        logging.getLogger("kopf").setLevel(logging.WARNING)
        # it would warn that signals go to the main thread, which is as it should be
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        registry = kopf.OperatorRegistry()
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.persistence.finalizer = "volcano.sh/never-set"
        settings.queueing.idle_timeout = 0.5

        async def login(**_: Any) -> Any:
            return kopf.AiohttpSession(server=self._credentials.server, aiohttp_session=session_for(self._credentials))

        kopf.on.login(registry=registry)(login)
        for rt, feed in self._feeds.items():
            kopf.on.event(rt.group, rt.version, rt.plural, id=rt.plural, registry=registry)(self._handler(feed))
        await kopf.operator(
            registry=registry, settings=settings, clusterwide=True, standalone=True, stop_flag=self._stop
        )

    def _handler(self, feed: HandFeed[Any]) -> Callable[..., Any]:
        async def seen(event: Any, **_: Any) -> None:
            # a copy: kopf goes on using its own
            manifest = dict(event["object"])
            self._hand_over(partial(feed.seen, manifest, gone=event["type"] == "DELETED"))

        return seen

    def _hand_over(self, work: Callable[[], None]) -> None:
        """Have it done in the controllers' event loop."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            log.debug("the controllers' event loop is closed")


def session_for(credentials: Credentials) -> aiohttp.ClientSession:
    """An aiohttp session with these credentials, for the running event loop.

    The token is that of this moment. When the server no longer takes it, kopf asks for another session.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=credentials.ssl or True, limit=0),
        headers=credentials.headers(),
        proxy=credentials.proxy,
    )
