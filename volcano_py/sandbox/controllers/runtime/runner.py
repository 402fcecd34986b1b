"""Queues the keys of changed objects for controllers; each controller syncs one key at a time.

Kubernetes: client-go's work queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from volcano_py.kube.workqueue import WorkQueue
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.storage.store import ADDED, Collection, Event, Store
from volcano_py.sandbox.controllers.runtime.owners import Listener, Object, Owners, controller_of

LOG = logging.getLogger(__name__)

Key = Hashable
Sync = Callable[[Key], Awaitable[float | None]]

GATHER = 0.05  # seconds in which changes of many pods become one sync of their owner


@dataclass(slots=True)
class Controller:
    """A controller: which changes queue which keys, and the function that syncs a key.

    sync: may return the seconds until the next sync of the key. wakes: by collection, the keys that a change affects.
    everything: the same for all collections at once; it also receives the previous ownerReferences. owns: the
    collection whose objects are synced when an object that they manage changes. gather: seconds between a change and
    the sync. Functions other than sync must be fast: they run in the middle of another write.
    """

    name: str
    sync: Sync
    wakes: Mapping[str, Callable[[Event], Iterable[Key]]] = field(default_factory=dict)
    everything: Callable[[Collection, Event, list[Object]], Iterable[Key]] | None = None
    owns: str = ""
    gather: float = 0.0
    workers: int = 1


class Runner:
    """Runs one controller."""

    def __init__(self, controller: Controller, store: Store, owners: Owners) -> None:
        self.controller = controller
        self.store = store
        self.owners = owners
        self.queue: WorkQueue[Key] = WorkQueue(longest_retry=300.0, qps=1000.0, burst=1000)
        self._tasks: list[asyncio.Task[None]] = []
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Sync every object, then those that change."""
        chosen = self.controller
        for name, keys_of in chosen.wakes.items():
            collection = self.store.collections[name]
            observer = self._observer(keys_of)
            for entry in list(collection.select()):
                observer(Event(ADDED, entry, None))
            collection.observers.append(observer)
            self._undo.append(lambda rows=collection.observers, row=observer: rows.remove(row))  # type: ignore[misc]
        if chosen.everything is not None:
            for collection in list(self.store.collections.values()):
                for entry in list(collection.select()):
                    self._enqueue_after(chosen.everything(collection, Event(ADDED, entry, None), []), chosen.gather)
            self._listen(self._all)
        if chosen.owns:
            self._listen(self._owned)
        self._tasks = [asyncio.create_task(self._work()) for _ in range(chosen.workers)]

    def stop(self) -> None:
        self.queue.shut_down()
        for task in self._tasks:
            task.cancel()
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _observer(self, keys_of: Callable[[Event], Iterable[Key]]) -> Callable[[Event], None]:
        return lambda event: self._enqueue_after(keys_of(event), self.controller.gather)

    def _listen(self, listener: Listener) -> None:
        self.owners.listeners.append(listener)
        self._undo.append(lambda: self.owners.listeners.remove(listener))

    def _all(self, collection: Collection, event: Event, before: list[Object]) -> None:
        assert self.controller.everything is not None
        self._enqueue_after(self.controller.everything(collection, event, before), self.controller.gather)

    def _owned(self, collection: Collection, event: Event, before: list[Object]) -> None:
        """After a change of an object with a controller, or of its owners: sync the objects that manage it."""
        now = self.owners.references.get((collection.name, event.entry.key), [])
        for references in (now,) if before is now else (before, now):
            row = controller_of(references)
            holder = self.owners.alive.get(row["uid"]) if row is not None else None
            if holder is not None and holder[0] == self.controller.owns:
                self.queue.add_after(holder[1], GATHER)

    def _enqueue_after(self, keys: Iterable[Key], delay: float) -> None:
        for key in keys:
            self.queue.add_after(key, delay)

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                again = await self.controller.sync(key)
                self.queue.forget(key)
                if again is not None:
                    self.queue.add_after(key, again)
            except StatusError as error:
                LOG.debug("%s: %s: %s", self.controller.name, key, error)
                self.queue.add_rate_limited(key)
            except Exception:
                LOG.exception("%s: %s", self.controller.name, key)
                self.queue.add_rate_limited(key)
            finally:
                self.queue.done(key)
            await asyncio.sleep(0)


def start(controllers: Sequence[Controller], store: Store, owners: Owners) -> list[Runner]:
    """Run controllers in the running event loop."""
    runners = [Runner(controller, store, owners) for controller in controllers]
    for runner in runners:
        runner.start()
    return runners
