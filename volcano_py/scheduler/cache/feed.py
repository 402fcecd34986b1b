"""Informers into the model. Volcano: the event handlers of the scheduler cache.

Handlers run in the event loop and never during a cycle (a cycle does not let the loop run), so the model
needs no lock. The first cycle may start when `ready` is set: every watched kind has then been listed once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

import msgspec

from volcano_py.api import core, kinds
from volcano_py.kube import Client, Informer, Refused, scan
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.cache.filters import Filters
from volcano_py.scheduler.cache.kinds import DEFAULT_GATES, watched
from volcano_py.scheduler.cache.quarantine import Quarantine

log = logging.getLogger(__name__)


class Model(Protocol):
    """What the feed needs of `Cluster`."""

    def upsert(self, kind: str, obj: Any) -> None: ...

    def remove(self, kind: str, namespace: str, name: str) -> None: ...


class Feed:
    """Keeps `model` current.

    `on_change()` is called after each change; `on_gone(kind, namespace, name, uid)` after each deletion.
    """

    def __init__(
        self,
        client: Client,
        model: Model,
        filters: Filters,
        quarantine: Quarantine,
        on_change: Callable[[], None],
        on_gone: Callable[[str, str, str, str], None],
        gates: Collection[str] = DEFAULT_GATES,
    ) -> None:
        self.ready = asyncio.Event()
        self.events = 0
        """Changes so far."""
        self.informers: dict[str, Informer[Any]] = {}
        self.ended: set[str] = set()
        """Kinds whose informer has ended, which ends `run`."""
        self._model = model
        self._filters = filters
        self._quarantine = quarantine
        self._on_change = on_change
        self._on_gone = on_gone
        for entry in watched(gates):
            self.informers[entry.rt.kind] = self._informer(client, entry.rt, entry.optional)

    async def run(self) -> None:
        """Watch until cancelled. Raises what ended an informer."""
        # A large list makes the cyclic collector look at all of it again and again (most of 11 s for 50,000
        # pods); what is loaded now lives long, so it is put out of its sight.
        gc.disable()
        watches = {f"informer {i.rt.plural}": self._watch(kind, i) for kind, i in self.informers.items()}
        try:
            await run_all(watches | {"first lists": self._wait_for_lists()})
        finally:
            gc.enable()

    async def _watch(self, kind: str, informer: Informer[Any]) -> None:
        try:
            await informer.run()
        finally:
            self.ended.add(kind)

    async def _wait_for_lists(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self.informers.values()))
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()
        log.info("all kinds are listed: %s", self.sizes())
        self.ready.set()
        self._on_change()
        await asyncio.Event().wait()

    @property
    def connected(self) -> bool:
        """Whether the kinds that decide most are being watched right now."""
        return all(self.informers[kind].connected for kind in ("Pod", "Node", "PodGroup", "Queue"))

    def sizes(self) -> str:
        """How many objects of each kind are known, for the log."""
        sizes = {informer.rt.plural: len(informer.store) for informer in self.informers.values()}
        return ", ".join(f"{size} {plural}" for plural, size in sizes.items() if size) or "nothing"

    def refresh(self, kind: str, key: str) -> None:
        """Show the model again what the API server said last of an object."""
        obj = self.informers[kind].store.get(key)
        if obj is not None and self._filters.accepts(kind, obj):
            # The newest version may be one that cannot be decoded: a quarantine stays.
            self._upsert(kind, obj, newest=False)

    def put(self, kind: str, obj: Any) -> None:
        """Show the model an object that was read apart from the watch."""
        if self._filters.accepts(kind, obj):
            self._upsert(kind, obj)

    def put_undecodable_pod(self, refused: Refused) -> None:
        """Show the model a pod that was read apart from the watch and cannot be decoded: quarantine it.

        The model gets the last version that could be decoded, with the node and the deletion of this one: whether
        the pod takes room, and where, is right.
        """
        key = f"{refused.namespace}/{refused.name}"
        known = self.informers["Pod"].store.get(key)
        if known is not None and known.metadata.uid == refused.uid:
            node = scan.texts(refused.raw, "spec").get("nodeName", "")
            deleted = scan.texts(refused.raw, "metadata").get("deletionTimestamp")
            spec = msgspec.structs.replace(known.spec, node_name=node)
            metadata = msgspec.structs.replace(known.metadata, deletion_timestamp=deleted)
            self.put("Pod", msgspec.structs.replace(known, metadata=metadata, spec=spec))
        self._refuse("Pod", refused)

    def _informer(self, client: Client, rt: kinds.ResourceType, optional: bool) -> Informer[Any]:
        kind = rt.kind

        def add(new: Any) -> None:
            if self._filters.accepts(kind, new):
                self._upsert(kind, new)

        def update(old: Any, new: Any) -> None:
            if self._filters.accepts(kind, new):
                self._upsert(kind, new)
            elif self._filters.accepts(kind, old):
                self._remove(kind, new)

        def delete(last: Any) -> None:
            self._remove(kind, last)
            self._on_gone(kind, last.metadata.namespace, last.metadata.name, last.metadata.uid)

        return Informer(
            client,
            rt,
            kinds.STRUCTS[rt],
            decode_error=lambda refused: self._refuse(kind, refused),
            refused_gone=lambda key: self._quarantine.release(kind, key),
            prepare=core.detach if kind == "Pod" else None,
            optional=optional,
        ).on(add, update, delete)

    def _refuse(self, kind: str, refused: Refused) -> None:
        self._quarantine.put(kind, refused.namespace, refused.name, refused.uid, refused.error)

    def _upsert(self, kind: str, obj: Any, newest: bool = True) -> None:
        try:
            self._model.upsert(kind, obj)
        except Exception as error:
            # ValueError is what the model raises on purpose; whatever else an object provokes costs that object only.
            meta, why = obj.metadata, str(error) if isinstance(error, ValueError) else repr(error)
            if not isinstance(error, ValueError):
                log.exception("%s %s cannot be used", kind, meta.key)
            self._quarantine.put(kind, meta.namespace, meta.name, meta.uid, why)
        else:
            if newest:
                self._quarantine.release(kind, obj.metadata.key)
        self._changed()

    def _remove(self, kind: str, obj: Any) -> None:
        self._quarantine.release(kind, obj.metadata.key)
        self._model.remove(kind, obj.metadata.namespace, obj.metadata.name)
        self._changed()

    def _changed(self) -> None:
        self.events += 1
        self._on_change()
