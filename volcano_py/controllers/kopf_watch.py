"""Watches rarely changing kinds with kopf: JobFlow, JobTemplate, CronJob, ColocationConfiguration.

kopf runs in a separate thread (`kopf_thread`). Its events go to the controllers' event loop, where a `KopfFeed`
replaces an informer.

kopf does not report deletions that happened while its stream was broken, and skips objects that it cannot decode: the
kinds are therefore also listed here, before each run and once a minute.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from volcano_py.api import kinds
from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import ApiObject
from volcano_py.controllers.kopf_thread import KopfThread
from volcano_py.kube import wire
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError, TooManyRequests
from volcano_py.kube.remedies import remedy
from volcano_py.kube.wire import Undecodable

T = TypeVar("T", bound=ApiObject)
log = logging.getLogger(__name__)

KINDS = (kinds.JOBFLOW, kinds.JOBTEMPLATE, kinds.CRONJOB, kinds.COLOCATIONCONFIGURATION)
LIST_SECONDS = 60.0
"""Seconds between two lists."""
MOST_TEXT = 500
"""Maximum characters of an error in the log."""


class KopfFeed(Generic[T]):
    """One kind: the interface of an informer for a Mirror, fed by kopf and by lists."""

    def __init__(self, rt: ResourceType, struct: type[T]) -> None:
        self.rt = rt
        self.store: dict[str, T] = {}
        self.synced = asyncio.Event()
        self.struct = struct
        self._problems: dict[str, str] = {}
        """Objects that cannot be decoded, with the logged reason."""
        self._add: list[Callable[[T], None]] = []
        self._update: list[Callable[[T, T], None]] = []
        self._delete: list[Callable[[T], None]] = []

    def on(
        self,
        add: Callable[[T], None] | None = None,
        update: Callable[[T, T], None] | None = None,
        delete: Callable[[T], None] | None = None,
    ) -> KopfFeed[T]:
        """Call `add(new)`, `update(old, new)`, `delete(last known)` after the store has changed."""
        if add is not None:
            self._add.append(add)
        if update is not None:
            self._update.append(update)
        if delete is not None:
            self._delete.append(delete)
        return self

    def seen(self, manifest: dict[str, Any], *, gone: bool = False) -> None:
        """An object as the server had it, now or earlier; a version older than the stored one is dropped."""
        try:
            obj = wire.decoder(self.struct).decode(json.dumps(manifest))  # orjson writes no more than 254 levels
        except (msgspec.MsgspecError, RecursionError) as error:
            metadata = manifest.get("metadata") or {}
            if not gone:
                self._reject(f"{metadata.get('namespace') or ''}/{metadata.get('name')}".lstrip("/"), str(error))
            return
        self._see(obj, gone=gone)

    def _see(self, obj: T, *, gone: bool = False) -> None:
        self._problems.pop(obj.key, None)
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

    def listed(self, objects: Iterable[T], rejected: Iterable[Undecodable], version: str) -> None:
        """All objects at a resourceVersion of the list; stored objects that are missing and not newer are deleted.

        The stored version of an object in `rejected` is kept.
        """
        there, undecodable = set(), set()
        for one in rejected:
            there.add(one.uid)
            undecodable.add(f"{one.namespace}/{one.name}".lstrip("/"))
            self._reject(f"{one.namespace}/{one.name}".lstrip("/"), one.error)
        for key in [key for key in self._problems if key not in undecodable]:
            del self._problems[key]
        for obj in objects:
            there.add(obj.metadata.uid)
            self._see(obj)
        for obj in list(self.store.values()):
            if obj.metadata.uid not in there and _version(obj) <= int(version or 0):
                self._drop(obj)
        self.synced.set()

    def _reject(self, key: str, why: str) -> None:
        if self._problems.get(key) != why:
            log.error("%s %s cannot be used and is ignored: %s; correct or delete it", self.rt.kind, key, why)
        self._problems[key] = why

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


class KopfWatch:
    """All kinds that kopf watches. `run` is called during leadership."""

    def __init__(self, client: Client) -> None:
        self.feeds: dict[ResourceType, KopfFeed[Any]] = {}
        self.thread: KopfThread | None = None
        """The current run of kopf."""
        self._client = client

    def feed(self, rt: ResourceType) -> KopfFeed[Any]:
        """The feed of a kind. Call it before `run`."""
        if rt not in self.feeds:
            self.feeds[rt] = KopfFeed(rt, kinds.STRUCTS[rt])
        return self.feeds[rt]

    async def run(self) -> None:
        """List and watch until cancelled; kopf has then ended. Errors of the server are never raised."""
        backoff = Backoff()
        while True:
            await asyncio.gather(*(self._list_patiently(feed) for feed in self.feeds.values()))
            thread = self.thread = KopfThread(self._client.credentials, self.feeds)
            began = time.monotonic()
            try:
                thread.start()
                await self._beside(thread)
            finally:
                await thread.stop()
            if time.monotonic() - began > LIST_SECONDS:
                backoff.reset()
            why = "no reason given" if thread.failure is None else repr(thread.failure)[:MOST_TEXT]
            log.warning("kopf has ended (%s); starting it again", why)
            await asyncio.sleep(backoff.next())

    async def _beside(self, thread: KopfThread) -> None:
        """List at regular intervals while kopf runs."""
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

    async def _list_patiently(self, feed: KopfFeed[Any]) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._list(feed)
                return
            except KubeError as error:
                loud = backoff.failures in ((10, 100) if isinstance(error, TooManyRequests) else (0, 10, 100))
                what = remedy(error, feed.rt, ("list", "watch"))
                text = f"{error}; {what}" if what else f"{error}"
                log.log(logging.WARNING if loud else logging.DEBUG, "%s: %s; retrying", feed.rt.plural, text)
                await asyncio.sleep(backoff.next())

    async def _list(self, feed: KopfFeed[Any]) -> None:
        objects: list[Any] = []
        rejected: list[Undecodable] = []
        version = ""
        async for body in self._client.raw_pages(feed.rt):
            page, bad = await wire.read_list_lenient(body, feed.struct)
            objects += page
            rejected += bad
            version = version or page.resource_version
        feed.listed(objects, rejected, version)
