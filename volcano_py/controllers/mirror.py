"""A controller's cache of one kind: the informer's objects, updated with the responses to its own writes.

The informer lags behind the controller's writes. A reconciler that only read the informer's store would create pods
twice, or use a PodGroup that it has just deleted. So the responses to writes are stored at once (`note`, `forget`),
and an event of the informer replaces them only if it is newer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import ApiObject

T = TypeVar("T", bound=ApiObject)
log = logging.getLogger(__name__)

CONFIRM_SECONDS = 60.0
"""Seconds after which a write that the informer did not confirm is dropped from the cache."""


REMEMBERED = 10_000
"""Number of recent deletions that are kept, because the response to a write may arrive after the deletion."""


class Feed(Protocol[T]):
    """The source of a mirror's objects: an informer, or a replacement."""

    store: dict[str, T]
    synced: asyncio.Event
    """Set after the first complete list."""

    def on(
        self,
        add: Callable[[T], None] | None = None,
        update: Callable[[T, T], None] | None = None,
        delete: Callable[[T], None] | None = None,
    ) -> Any:
        """Call `add(new)`, `update(old, new)`, `delete(last known)` after the store has changed."""


class Mirror(Generic[T]):
    """Objects by key (`namespace/name`), and optionally by an index."""

    def __init__(self, informer: Feed[T], struct: type[T], index: Callable[[T], Iterable[str]] | None = None) -> None:
        self._informer = informer
        self._struct = struct
        self._index_of = index
        self._objects: dict[str, T] = {}
        self._index: dict[str, dict[str, T]] = {}
        self._ended: dict[str, str] = {}
        self._gone: dict[str, None] = {}
        """UIDs of recent deletions seen by the informer, oldest first."""
        self._delete: list[Callable[[T], None]] = []
        informer.on(add=self._seen, update=lambda old, new: self._seen(new), delete=self._dropped)

    @property
    def informer(self) -> Feed[T]:
        """The source of the objects."""
        return self._informer

    def on(
        self,
        add: Callable[[T], None] | None = None,
        update: Callable[[T, T], None] | None = None,
        delete: Callable[[T], None] | None = None,
    ) -> None:
        """Call `add(new)`, `update(old, new)`, `delete(last known)` after the cache has changed.

        `delete` is also called for an object that this process has written and that was deleted before the informer
        saw it.
        """
        self._informer.on(add, update, delete)
        if delete is not None:
            self._delete.append(delete)

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    def all(self) -> list[T]:
        return list(self._objects.values())

    def by_index(self, value: str) -> list[T]:
        """The objects for which the index function returns `value`."""
        return list(self._index.get(value, {}).values())

    def count(self, value: str) -> int:
        """The number of objects that `by_index` returns."""
        return len(self._index.get(value, ()))

    def note(self, manifest: dict[str, Any]) -> None:
        """Store the response to a write."""
        try:
            obj = from_manifest(self._struct, manifest)
        except (msgspec.MsgspecError, TypeError, RecursionError) as error:
            # TypeError: nested too deep for orjson. The informer delivers what can be decoded.
            log.debug("response of the API server for a %s: %s", self._struct.__name__, error)
            return
        key = obj.key
        if obj.metadata.uid in self._gone:
            return  # the watch delivered the deletion before the response to an earlier write
        if self._newer(obj) and self._ended.get(key) != obj.metadata.uid:
            self._put(obj)
            if key not in self._informer.store:
                asyncio.get_running_loop().call_later(CONFIRM_SECONDS, self._expire, key, obj.metadata.uid)

    def forget(self, key: str, uid: str) -> None:
        """The object with this UID was deleted by a write."""
        current = self._objects.get(key)
        if current is not None and (not uid or current.metadata.uid == uid):
            self._remove(current)
        known = self._informer.store.get(key)
        if known is not None and uid and known.metadata.uid == uid:
            self._ended[key] = uid

    def _newer(self, obj: T) -> bool:
        current = self._objects.get(obj.key)
        if current is None or current.metadata.uid != obj.metadata.uid:
            return True
        return version_of(obj) >= version_of(current)

    def _seen(self, obj: T) -> None:
        if self._ended.get(obj.key) == obj.metadata.uid:
            return
        self._ended.pop(obj.key, None)
        if self._newer(obj):
            self._put(obj)

    def _dropped(self, obj: T) -> None:
        self._gone[obj.metadata.uid] = None
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]
        if self._ended.get(obj.key) == obj.metadata.uid:
            del self._ended[obj.key]
        current = self._objects.get(obj.key)
        if current is not None and current.metadata.uid == obj.metadata.uid:
            self._remove(current)

    def _expire(self, key: str, uid: str) -> None:
        current = self._objects.get(key)
        if current is not None and current.metadata.uid == uid and key not in self._informer.store:
            log.warning("%s %s was never seen after it was written", self._struct.__name__, key)
            self._remove(current)
            for handler in self._delete:
                try:
                    handler(current)
                except Exception:
                    log.exception("a handler of %s failed", self._struct.__name__)

    def _put(self, obj: T) -> None:
        old = self._objects.get(obj.key)
        if old is not None:
            self._remove(old)
        self._objects[obj.key] = obj
        if self._index_of is not None:
            for value in self._index_of(obj):
                self._index.setdefault(value, {})[obj.key] = obj

    def _remove(self, obj: T) -> None:
        del self._objects[obj.key]
        if self._index_of is not None:
            for value in self._index_of(obj):
                bucket = self._index[value]
                bucket.pop(obj.key, None)
                if not bucket:
                    del self._index[value]


def version_of(obj: ApiObject) -> int:
    """The resource version of an object as a number; 0: it has none."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0
