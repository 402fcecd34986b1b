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

from volcano_py.api import core, kinds
from volcano_py.kube import Client, Informer, Refused
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
        self._model = model
        self._filters = filters
        self._quarantine = quarantine
        self._on_change = on_change
        self._on_gone = on_gone
        for entry in watched(gates):
            self.informers[entry.rt.kind] = self._informer(client, entry.rt, entry.optional)

    async def run(self) -> None:
        """Watch until cancelled."""
        # A large list makes the cyclic collector look at all of it again and again (most of 11 s for 50,000
        # pods); what is loaded now lives long, so it is put out of its sight.
        gc.disable()
        tasks = [asyncio.create_task(informer.run()) for informer in self.informers.values()]
        try:
            await asyncio.gather(*(informer.synced.wait() for informer in self.informers.values()))
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000, 20, 50)
            gc.enable()
            log.info("all kinds are listed: %s", self.sizes())
            self.ready.set()
            self._on_change()
            await asyncio.gather(*tasks)
        finally:
            gc.enable()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
            self._upsert(kind, obj)

    def put(self, kind: str, obj: Any) -> None:
        """Show the model an object that was read apart from the watch."""
        if self._filters.accepts(kind, obj):
            self._upsert(kind, obj)

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

        def refuse(refused: Refused) -> None:
            self._quarantine.put(kind, refused.namespace, refused.name, refused.uid, refused.error)

        return Informer(
            client,
            rt,
            kinds.STRUCTS[rt],
            decode_error=refuse,
            prepare=core.detach if kind == "Pod" else None,
            optional=optional,
        ).on(add, update, delete)

    def _upsert(self, kind: str, obj: Any) -> None:
        try:
            self._model.upsert(kind, obj)
        except ValueError as error:
            meta = obj.metadata
            self._quarantine.put(kind, meta.namespace, meta.name, meta.uid, str(error))
        else:
            self._quarantine.release(kind, obj.metadata.key)
        self._changed()

    def _remove(self, kind: str, obj: Any) -> None:
        self._quarantine.release(kind, obj.metadata.key)
        self._model.remove(kind, obj.metadata.namespace, obj.metadata.name)
        self._changed()

    def _changed(self) -> None:
        self.events += 1
        self._on_change()
