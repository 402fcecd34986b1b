"""Events on objects, aggregated and rate limited. client-go: tools/record.

Follows client-go's correlator: a repeated event increases `count` on the stored one; from the tenth
different message of one reason on one object within ten minutes they are combined in one `(combined from similar
events)`; and each object may cause 25 events at once and then one in five minutes. `Correlator` is pure;
`EventRecorder` adds a bounded queue and the writes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from volcano_py.api.resource_types import EVENT
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from volcano_py.kube.ratelimit import TokenBucket

log = logging.getLogger(__name__)

CACHE_SIZE = 4096
SIMILAR_MESSAGES = 10
SIMILAR_SECONDS = 600.0
SPAM_BURST = 25
SPAM_QPS = 1 / 300
QUEUE_SIZE = 1000


@dataclass
class EventWrite:
    """A write: `create` as a new object, or `patch` the stored event `name` (create it if it was deleted)."""

    namespace: str
    name: str
    create: dict[str, Any]
    patch: dict[str, Any] | None


@dataclass
class _Similar:
    last: float
    messages: set[str] = field(default_factory=set)


@dataclass
class _Stored:
    name: str
    count: int
    first: str


def reference(obj: Any) -> dict[str, str]:
    """An ObjectReference for a dict or Struct: an object (with metadata), or already a reference."""
    if isinstance(obj, dict):
        meta = obj.get("metadata")
        get: Callable[[Any, str], Any] = dict.get
        source: Any = meta if isinstance(meta, dict) else obj
    else:
        get, source = _attribute, getattr(obj, "metadata", None) or obj
    ref = {
        "apiVersion": get(obj, "apiVersion"),
        "kind": get(obj, "kind"),
        "namespace": get(source, "namespace"),
        "name": get(source, "name"),
        "uid": get(source, "uid"),
        "resourceVersion": get(source, "resourceVersion"),
    }
    return {key: value for key, value in ref.items() if value}


def _attribute(obj: Any, name: str) -> str | None:
    snake = {"apiVersion": "api_version", "resourceVersion": "resource_version"}.get(name, name)
    return getattr(obj, snake, None)


class Correlator:
    """Decides whether an event is created, counted on a stored one, or dropped."""

    def __init__(self, component: str, host: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._source = {"component": component} | ({"host": host} if host else {})
        self._clock = clock
        self._spam: OrderedDict[tuple[str, ...], TokenBucket] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._stored: OrderedDict[tuple[str, ...], _Stored] = OrderedDict()
        self._serial = 0
        self.dropped = 0
        """Number of events dropped by the spam filter."""

    def correlate(
        self, ref: dict[str, str], type: str, reason: str, message: str, now: float | None = None
    ) -> EventWrite | None:
        """The write for one event; `now` is wall time in seconds, for the timestamps. None: drop the event."""
        subject = tuple(ref.get(k, "") for k in ("kind", "namespace", "name", "uid", "apiVersion"))
        bucket = _remember(self._spam, subject, lambda: TokenBucket(SPAM_QPS, SPAM_BURST, self._clock))
        if not bucket.try_take():
            self.dropped += 1
            return None
        series = (*subject, type, reason)
        similar = _remember(self._similar, series, lambda: _Similar(self._clock()))
        if self._clock() - similar.last > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last = self._clock()
        similar.messages.add(message)
        if len(similar.messages) >= SIMILAR_MESSAGES:
            similar.messages.pop()
            key, text = series, f"(combined from similar events): {message}"
        else:
            key, text = (*series, message), message
        stamp = datetime.fromtimestamp(time.time() if now is None else now, UTC)
        return self._write(ref, key, type, reason, text, stamp)

    def undo(self, write: EventWrite) -> None:
        """The write has failed, or its response was lost: the next write of this event is the same one."""
        for stored in self._stored.values():
            if stored.name == write.name:
                stored.count -= 1
                return

    def forget(self, write: EventWrite) -> None:
        """The stored event was deleted (events live an hour): create a new one next time."""
        for key, stored in self._stored.items():
            if stored.name == write.name:
                del self._stored[key]
                return

    def _write(
        self, ref: dict[str, str], key: tuple[str, ...], type: str, reason: str, message: str, stamp: datetime
    ) -> EventWrite:
        text = stamp.strftime("%Y-%m-%dT%H:%M:%SZ")
        known = self._stored.get(key)
        if known is None:
            self._serial += 1
            name = f"{ref.get('name', 'unknown')}.{int(stamp.timestamp() * 1e6):x}{self._serial & 0xFFF:03x}"
            known = _remember(self._stored, key, lambda: _Stored(name, 0, text))
        else:
            self._stored.move_to_end(key)
        known.count += 1
        namespace = ref.get("namespace") or "default"
        obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": known.name, "namespace": namespace},
            "involvedObject": ref,
            "reason": reason,
            "message": message[:1024],
            "source": self._source,
            "firstTimestamp": known.first,
            "lastTimestamp": text,
            "count": known.count,
            "type": type,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source.get("host", ""),
        }
        patch = {"count": known.count, "lastTimestamp": text, "message": message[:1024]}
        return EventWrite(namespace, known.name, obj, patch if known.count > 1 else None)


async def send(client: Client, correlator: Correlator, write: EventWrite) -> None:
    """Execute one write. Raises KubeError; after `undo` the same event may be sent again, and is counted once."""
    if write.patch is not None:
        try:
            await client.patch(EVENT, write.name, write.patch, write.namespace, "merge")
            return
        except NotFound:
            correlator.forget(write)
            write.create["count"] = 1
    try:
        await client.create(EVENT, write.create, write.namespace)
    except AlreadyExists:
        log.debug("event %s/%s exists: the response to its creation was lost", write.namespace, write.name)


class EventRecorder:
    """`event()` returns immediately; `run()` writes. If the server is slow, the newest events are dropped."""

    def __init__(self, client: Client, component: str, host: str = "") -> None:
        self._client = client
        self._correlator = Correlator(component, host)
        self._queue: asyncio.Queue[tuple[dict[str, str], str, str, str, float]] = asyncio.Queue(QUEUE_SIZE)
        self.dropped = 0
        """Events dropped because the queue was full or the server rejected them."""

    def event(self, ref: Any, type: str, reason: str, message: str) -> None:
        """Queue an event on an object or reference. `type` is Normal or Warning."""
        try:
            self._queue.put_nowait((reference(ref), type, reason, message, time.time()))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            ref, type_, reason, message, now = await self._queue.get()
            try:
                write = self._correlator.correlate(ref, type_, reason, message, now)
                if write is not None:
                    await self._deliver(write)
            except Exception:
                # Events are best effort: an error in one must not prevent the next ones.
                log.exception("event %s on %s", reason, ref)
                self.dropped += 1
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all queued events are written or dropped."""
        await self._queue.join()

    async def _deliver(self, write: EventWrite) -> None:
        for pause in (0.5, 2.0, 8.0, None):
            try:
                await send(self._client, self._correlator, write)
                return
            except ApiError as error:
                # Rejected without a retry: a terminating namespace, or an invalid message.
                log.debug("event %s/%s: %s", write.namespace, write.name, error)
                break
            except KubeError as error:
                log.debug("event %s/%s: %s", write.namespace, write.name, error)
                if pause is None:
                    break
                await asyncio.sleep(pause)
        self.dropped += 1


def _remember(cache: OrderedDict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    found = cache.get(key)
    if found is None:
        found = cache[key] = make()
        if len(cache) > CACHE_SIZE:
            cache.popitem(last=False)
    else:
        cache.move_to_end(key)
    return found
