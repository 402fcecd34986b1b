"""The fields of a pod that controllers read, decoded once for each version of it. Kubernetes: pkg/api/v1/pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from volcano_py.sandbox.apiserver.schema.codec import parse_time
from volcano_py.sandbox.apiserver.storage.store import DELETED, Collection, Entry, Event

Object = dict[str, Any]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class Pod(NamedTuple):
    """One version of a pod. Times are seconds since the epoch, 0 when there is none.

    stopped: it was deleted, its containers have ended, and only finalizers keep the object.
    """

    entry: Entry
    name: str
    labels: dict[str, str]
    phase: str
    node: str
    deleting: bool
    stopped: bool
    finalizers: tuple[str, ...]
    ready: bool
    ready_since: float
    created: str
    ended: float
    restarts: int
    deletion_cost: int

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def active(self) -> bool:
        """Neither finished nor terminating."""
        return not self.deleting and not self.finished

    def available_in(self, min_ready: int, now: float) -> float | None:
        """Seconds until the pod has been ready for a period: 0 if it has, None while it is not ready."""
        if not self.ready:
            return None
        return max(self.ready_since + min_ready - now, 0.0) if min_ready else 0.0


def read(entry: Entry) -> Pod:
    """A pod from the store."""
    obj = entry.load()
    meta, status = obj["metadata"], obj.get("status") or {}
    ready = next((row for row in status.get("conditions") or () if row["type"] == "Ready"), None)
    is_ready = ready is not None and ready["status"] == "True"
    rows = status.get("containerStatuses") or ()
    since = ready.get("lastTransitionTime") if ready is not None and is_ready else None
    return Pod(
        entry,
        entry.name,
        entry.labels,
        status.get("phase", ""),
        obj["spec"].get("nodeName", ""),
        bool(meta.get("deletionTimestamp")),
        bool(meta.get("deletionTimestamp")) and not meta.get("deletionGracePeriodSeconds"),
        tuple(meta.get("finalizers") or ()),
        is_ready,
        parse_time(since).timestamp() if since else 0.0,
        meta.get("creationTimestamp", ""),
        _ended(rows),
        sum(row.get("restartCount", 0) for row in rows),
        _integer((meta.get("annotations") or {}).get(_DELETION_COST, "0")),
    )


class Pods:
    """Keeps the decoded pods."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._read: dict[str, Pod] = {}
        collection.observers.append(self._observe)

    def stop(self) -> None:
        self.collection.observers.remove(self._observe)

    def of(self, entries: Iterable[Entry]) -> list[Pod]:
        out = []
        for entry in entries:
            found = self._read.get(entry.key)
            if found is None or found.entry is not entry:
                found = self._read[entry.key] = read(entry)
            out.append(found)
        return out

    def _observe(self, event: Event) -> None:
        if event.type == DELETED:
            self._read.pop(event.entry.key, None)


def _ended(rows: Iterable[Object]) -> float:
    """The time when the last container ended."""
    stamps = [((row.get("state") or {}).get("terminated") or {}).get("finishedAt") for row in rows]
    return max((parse_time(stamp).timestamp() for stamp in stamps if stamp), default=0.0)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
