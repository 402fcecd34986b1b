"""The informer: a local copy of the objects of one kind, kept up to date by list and watch.

Follows client-go's reflector: paged list, watch from the list's version with bookmarks,
resume at the last version after a disconnect, list again after 410 and turn the difference into events. Two
differences: a stream that is silent for too long is reopened (half-open connections), and an object
that cannot be decoded is passed to `decode_error`, and the watch continues; its previous version stays in
the store, and `decode_error_cleared` receives its key when it is deleted or can be decoded again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from volcano_py.kube import scan, wire
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import PAGE_SIZE, Client, selectors
from volcano_py.kube.errors import Forbidden, Gone, KubeError, NotFound, Silent, TooManyRequests
from volcano_py.kube.remedies import remedy
from volcano_py.kube.served import served
from volcano_py.kube.watch import INACTIVITY, StreamBroken, WatchEvent, watch_blocks
from volcano_py.kube.wire import Undecodable

if TYPE_CHECKING:
    from volcano_py.api.resource_types import ResourceType

T = TypeVar("T")
log = logging.getLogger(__name__)

WATCH_SECONDS = (300, 600)
"""Requested durations of a watch, selected at random, to distribute the load between servers."""
SHORT_STREAM = 1.0
"""Seconds; a watch that ends earlier without an event counts as a failure, otherwise a broken
proxy would receive requests without a pause.
"""
STUCK = 900.0
"""Seconds after the inactivity of a watch until an idle informer counts as stuck: longer than the
retries of one request (Retry-After).
"""


class Informer(Generic[T]):
    """Watches one kind. `store` maps `namespace/name` (or `name`) to the newest object; do not modify it."""

    def __init__(
        self,
        client: Client,
        rt: ResourceType,
        type: Any = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        decode_error: Callable[[Undecodable], None] | None = None,
        *,
        decode_error_cleared: Callable[[str], None] | None = None,
        prepare: Callable[[T], T] | None = None,
        page_size: int = PAGE_SIZE,
        inactivity: float = INACTIVITY,
        backoff: Backoff | None = None,
        optional: bool = False,
        versions: Sequence[ResourceType] = (),
    ) -> None:
        """`versions`: of the kind, the preferred one first; the first that is served is watched, else `rt`."""
        self.rt = rt
        self._versions = tuple(versions)
        self.store: dict[str, T] = {}
        self.synced = asyncio.Event()
        """Set after the first complete list."""
        self.connected = False
        """Whether a watch is open; if not, the store may be stale."""
        self.error: Exception | None = None
        """The error that ended the last list or watch; None while a watch is open."""
        self.resource_version = ""
        """The version from which the next watch starts."""
        self._active = time.monotonic()
        self._wanted = 1
        """Number of the list that must be made before the next watch; `_made` is the last one that was."""
        self._made = 0
        self._list_ended = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._client = client
        self.type = type
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._decode_error = decode_error
        self._decode_error_cleared = decode_error_cleared
        self._prepare = prepare
        self._optional = optional
        self.missing = False
        """Whether the API server does not serve this optional kind, by the last list or watch."""
        self._broken = 0
        self._looked = False
        """Whether the versions that are served were read again since the last watch was open."""
        self._reported: dict[str, str] = {}
        self._doubted: set[str] = set()
        """Keys whose objects the next list replaces, also if they have its version."""
        self._page_size = page_size
        self._inactivity = inactivity
        self._backoff = backoff or Backoff()
        self._add: list[Callable[[T], None]] = []
        self._update: list[Callable[[T, T], None]] = []
        self._delete: list[Callable[[T], None]] = []

    def on(
        self,
        add: Callable[[T], None] | None = None,
        update: Callable[[T, T], None] | None = None,
        delete: Callable[[T], None] | None = None,
    ) -> Informer[T]:
        """Call `add(new)`, `update(old, new)`, `delete(last known)`.

        Handlers must not block; their exceptions are logged. They are called after the store has changed. An object
        that was deleted and created again between two lists is a delete and an add.
        """
        self._add += [add] if add is not None else []
        self._update += [update] if update is not None else []
        self._delete += [delete] if delete is not None else []
        return self

    def problem(self) -> str:
        """Why `run` counts as stuck, for /healthz; empty if it makes progress, with or without a server."""
        silent = time.monotonic() - self._active
        return f"no request and no event for {silent:.0f} s" if silent > self._inactivity + STUCK else ""

    async def run(self) -> None:
        """List and watch until cancelled. Raises nothing else, for any response of the server."""
        while True:
            self._active = time.monotonic()
            try:
                if not self.resource_version or self._made < self._wanted:
                    wanted = self._wanted
                    await self._list()
                    self._listed(wanted)
                if self._made == self._wanted:
                    await self._watch_until_list_is_wanted()
                    self._broken = 0
            except Silent:
                log.debug("%s: nothing changed; watching again", self.rt.plural)
            except Exception as error:
                self.error = error
                await asyncio.sleep(self._after(error))

    async def catch_up(self, grace: float) -> None:
        """Return when the store has what the API server has now, or newer. Raises KubeError if it cannot be read.

        The watch may reach the newest version within `grace` seconds; otherwise, the objects are listed again.
        """
        try:
            query: dict[str, Any] = selectors(self._label_selector, self._field_selector) | {"limit": 1}
            body = await self._client.raw("GET", self.rt.path(self._namespace), params=query)
        except (NotFound, Forbidden):
            if self._optional:
                return
            raise
        newest = scan.texts(body, "metadata").get("resourceVersion", "")
        deadline = time.monotonic() + grace
        while self.synced.is_set() and time.monotonic() < deadline:
            if self._reached(newest):
                return
            await asyncio.sleep(0.01)
        await self.list_again()

    async def list_again(self, doubted: Collection[str] = ()) -> None:
        """Return after a complete list that began after this call. `doubted`: keys of objects that the list replaces
        in the store, also if they have the same version."""
        self._doubted.update(doubted)
        self._wanted += 1
        wanted = self._wanted
        if self._watching is not None:
            self._watching.cancel()
        while self._made < wanted:
            await self._list_ended.wait()

    async def page(self, limit: int, token: str = "", accept: str = "") -> bytes:
        """One page of what the API server has now. The store does not change. Raises KubeError."""
        query: dict[str, Any] = selectors(self._label_selector, self._field_selector) | {"limit": limit}
        if token:
            query["continue"] = token
        headers = {"Accept": accept} if accept else None
        return await self._client.raw("GET", self.rt.path(self._namespace), params=query, headers=headers)

    def prepared(self, obj: T) -> T:
        """An object in the form in which the store has it."""
        return obj if self._prepare is None else self._prepare(obj)

    def has_reported(self, key: str) -> bool:
        """Whether the newest version of an object cannot be decoded; the store may have an older one."""
        return key in self._reported

    def _reached(self, version: str) -> bool:
        """Whether the store has this version, or a newer one."""
        mine = self.resource_version
        return mine == version or (mine.isdecimal() and version.isdecimal() and int(mine) >= int(version))

    def _listed(self, wanted: int) -> None:
        self._made = wanted
        self.synced.set()
        self._list_ended.set()
        self._list_ended = asyncio.Event()

    async def _watch_until_list_is_wanted(self) -> None:
        # The watch must end before the list begins: its older events would replace newer objects.
        self._watching = asyncio.create_task(self._watch(), name=f"watch of {self.rt.plural}")
        try:
            await self._watching
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._made == self._wanted or (current is not None and current.cancelling()):
                raise
        finally:
            self._watching.cancel()
            self._watching = None

    def _after(self, error: Exception) -> float:
        """Log the error that ended a list or watch, once per outage; returns the seconds until the next attempt."""
        first = self._backoff.failures in (0, 10, 100)
        if isinstance(error, Gone):
            log.info("%s: %s; listing again", self.rt.plural, error)
            self.resource_version = ""
            if not self._backoff.failures:
                self._backoff.failures += 1
                return 0.0
        elif isinstance(error, NotFound) and self._versions and self.resource_version and not self._looked:
            self.resource_version, self._looked = "", True  # this version is not served any more
            return 0.0
        elif isinstance(error, NotFound | Forbidden):
            if isinstance(error, NotFound) and self._versions:
                self.resource_version = ""
            if first and not (self._optional and self._backoff.failures):
                level = logging.INFO if self._optional else logging.ERROR
                what = remedy(error, self.rt, ("list", "watch"), self._namespace, self._versions)
                log.log(level, "%s: %s%s", self.rt.plural, error, f"; {what}" if what else "")
            if self._optional:
                self.missing = isinstance(error, NotFound)
                self._listed(self._wanted)
                return self._backoff.next() * 3
        elif isinstance(error, KubeError):
            # "storage is (re)initializing": the first response for every kind with a new CRD.
            loud = first and not (isinstance(error, TooManyRequests) and not self._backoff.failures)
            log.log(logging.WARNING if loud else logging.DEBUG, "%s: %s; retrying", self.rt.plural, error)
            if isinstance(error, StreamBroken):
                self._broken += 1
                if self._broken > 2:
                    self.resource_version, self._broken = "", 0
        else:
            # An unexpected error must not end the watch; a new list starts from a known state.
            log.error("%s: unexpected error; listing again", self.rt.plural, exc_info=error if first else None)
            self.resource_version = ""
        return self._backoff.next()

    async def _list(self) -> None:
        if self._versions:
            self.rt = await served(self._client, self._versions) or self.rt
        seen: set[str] = set()
        version = ""
        async for body in self._client.raw_pages(
            self.rt, self._namespace, self._label_selector, self._field_selector, self._page_size
        ):
            self._active = time.monotonic()
            page, undecodable = await wire.read_list_lenient(body, self.type)
            version = page.resource_version
            for obj in page:
                seen.add(key_of(obj))
                self._put(obj)
            for one in undecodable:
                seen.add(f"{one.namespace}/{one.name}" if one.namespace else one.name)
                self._report_undecodable(one)
        for key in [key for key in self._reported if key not in seen]:
            self._clear_error(key)
        for key in [key for key in self.store if key not in seen]:
            self._drop(key, self.store[key])
        self.resource_version = version
        self.missing = False
        self._doubted.clear()

    async def _watch(self) -> None:
        opened = time.monotonic()
        got_any = False
        try:
            async for block in watch_blocks(
                self._client,
                self.rt.path(self._namespace),
                selectors(self._label_selector, self._field_selector),
                resource_version=self.resource_version,
                type_=self.type,
                timeout_seconds=random.randint(*WATCH_SECONDS),
                inactivity=self._inactivity,
                on_open=self._opened,
            ):
                got_any = True
                self._active = time.monotonic()
                self._backoff.reset()
                for event in block:
                    self._apply(event)
        finally:
            self.connected = False
        if got_any or time.monotonic() - opened > SHORT_STREAM:
            self._backoff.reset()
        else:
            await asyncio.sleep(self._backoff.next())

    def _opened(self) -> None:
        self.connected, self._looked = True, False
        self.error = None

    def _apply(self, event: WatchEvent[Any]) -> None:
        obj = event.object
        if isinstance(obj, Undecodable):
            key = f"{obj.namespace}/{obj.name}" if obj.namespace else obj.name
            if event.type == "DELETED":
                self._clear_error(key)
                if key in self.store:
                    self._drop(key, self.store[key])
            elif event.type != "BOOKMARK":
                self._report_undecodable(obj)
            self.resource_version = obj.resource_version or self.resource_version
            return
        if event.type == "DELETED":
            key = key_of(obj)
            self._clear_error(key)
            if key in self.store:
                self._drop(key, obj)
        elif event.type != "BOOKMARK":
            self._put(obj)
        self.resource_version = wire.version(obj) or self.resource_version

    def _put(self, obj: Any) -> None:
        key = key_of(obj)
        self._clear_error(key)
        old: Any = self.store.get(key)
        if old is not None and wire.version(old) == wire.version(obj) != "" and key not in self._doubted:
            return
        if old is not None and uid_of(old) != uid_of(obj):
            self._drop(key, old)
            old = None
        obj = self.prepared(obj)
        self.store[key] = obj
        if old is None:
            self._call(self._add, obj)
        else:
            self._call(self._update, old, obj)

    def _drop(self, key: str, last: Any) -> None:
        del self.store[key]
        self._call(self._delete, last)

    def _report_undecodable(self, undecodable: Undecodable) -> None:
        key = f"{undecodable.namespace}/{undecodable.name}".lstrip("/")
        known, self._reported[key] = self._reported.get(key), undecodable.error
        if self._decode_error is not None:
            self._call([self._decode_error], undecodable)
        elif known != undecodable.error:
            log.error(
                "%s %s cannot be used and is ignored: %s; correct or delete it", self.rt.kind, key, undecodable.error
            )

    def _clear_error(self, key: str) -> None:
        """Report that an object was deleted or can be decoded again."""
        if self._reported.pop(key, None) is not None and self._decode_error_cleared is not None:
            self._call([self._decode_error_cleared], key)

    def _call(self, handlers: list[Any], *args: Any) -> None:
        for handler in handlers:
            try:
                handler(*args)
            except Exception:
                log.exception("a handler of %s failed on %s", self.rt.plural, args[-1].__class__.__name__)


def key_of(obj: Any) -> str:
    """`namespace/name`, or `name` for cluster-scoped objects."""
    namespace, name = wire.identity(obj)
    return f"{namespace}/{name}" if namespace else name


def uid_of(obj: Any) -> str:
    """The UID of a dict or Struct, empty if it has none."""
    if isinstance(obj, dict):
        return (obj.get("metadata") or {}).get("uid") or ""
    return getattr(obj.metadata, "uid", "") or ""
