"""Cache: the objects of the API server as a model, with assumed plans. Volcano: SchedulerCache.

The path of a pod: an informer's event changes the model; a session reads the model; the planner assumes the
session's plan on it (`Cluster.assume`); the dispatcher's result confirms that, or undoes it (`forget`).

Event handlers run in the event loop and never during a cycle, which does not yield to the loop: the model requires no
lock. The first cycle may start when `ready` is set: every watched kind has then been listed once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

import msgspec

from volcano_py.api import core, kinds
from volcano_py.kube import Client, Informer, Undecodable, scan
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.cache.filters import ObjectFilters
from volcano_py.scheduler.cache.kinds import Watched, watched
from volcano_py.scheduler.cache.quarantine import Quarantine
from volcano_py.scheduler.cache.results import ResultHandler
from volcano_py.scheduler.cache.resync import REQUEST_GRACE, Resync
from volcano_py.scheduler.cache.status_backoff import FIRST_PAUSE, StatusBackoff
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    NativeGroupStatus,
    Nomination,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from volcano_py.scheduler.runtime.collection import keep_loaded

log = logging.getLogger(__name__)

MAIN_KINDS = ("Pod", "Node", "PodGroup", "Queue")
"""The kinds that `connected` checks."""


class Follower(Protocol):
    """Receives the objects of the model after each change; implemented by the profiles."""

    def changed(self, kind: str, old: Any, new: Any) -> None:
        """An object was added (`old` is None), changed, or deleted or found invalid (`new` is None)."""
        ...

    def forgotten(self, operation: Operation, why: str) -> None:
        """An assumed operation was undone: it was not written."""
        ...

    def released(self, node: core.Node) -> None:
        """A node is no longer held."""
        ...

    def rebuilt(self) -> None:
        """The model was built again."""
        ...

    def assumes(self, key: str, uid: str) -> bool:
        """Whether a pod is assumed on a node although nothing was sent for it yet."""
        ...


class Cache:
    """Owns the model. Informers exist after `start`; `run` keeps the model current.

    write_event(event)                     emits an Event about an invalid object; False: this replica may not write
    on_change()                            is called after each change of the model
    on_delete(kind, namespace, name, uid)  is called after each deletion of an object
    on_new_pod(pod)                        is called after a valid pod without a node was added
    """

    def __init__(
        self,
        model: Cluster,
        filters: ObjectFilters,
        write_event: Callable[[Event], bool],
        on_change: Callable[[], None],
        on_delete: Callable[[str, str, str, str], None],
        gates: Collection[str] = DEFAULT_GATES,
        request_grace: float = REQUEST_GRACE,
        first_pause: float = FIRST_PAUSE,
        on_new_pod: Callable[[core.Pod], None] = lambda _: None,
    ) -> None:
        self.model = model
        self.quarantine = Quarantine(write_event)
        self.ready = asyncio.Event()
        self.events = 0
        """Number of changes so far."""
        self.informers: dict[str, Informer[Any]] = {}
        """Informers by kind in the model."""
        self.plurals: dict[str, str] = {}
        """The name of each kind in log lines."""
        self.ended: set[str] = set()
        """Kinds whose informer has ended, which ends `run`."""
        self.follower: Follower | None = None
        self._filters = filters
        self._on_change = on_change
        self._on_delete = on_delete
        self._on_new_pod = on_new_pod
        self._gates = gates
        self.resync = Resync(self, request_grace)
        self.emit_later: Callable[[list[Operation]], None] = self._not_emitted
        """Emits statuses that were held because the API server had rejected older ones of their object."""
        self.status_backoff = StatusBackoff(
            lambda operations: self.emit_later(operations), self._retry, self._version, first_pause
        )
        self._results = ResultHandler(self, self.resync, self.status_backoff, first_pause)

    def start(self, client: Client) -> None:
        """Create the informers; they list and watch with `client` when `run` begins."""
        self.resync.client = client
        for entry in watched(self._gates):
            self.informers[entry.kind] = self._informer(client, entry)
            self.plurals[entry.kind] = entry.plural

    async def run(self) -> None:
        """List and watch until cancelled. Raises the error that ended an informer or a read."""
        # A large list makes the cyclic collector traverse all of it again and again (most of 11 s for 50,000
        # pods); the loaded objects are long-lived, so they are frozen.
        gc.disable()
        watches = {f"informer {self.plurals[kind]}": self._watch(kind, i) for kind, i in self.informers.items()}
        try:
            await run_all(watches | {"first lists": self._wait_for_lists(), "resync": self.resync.run()})
        finally:
            gc.enable()

    def close(self) -> None:
        """Stop reads and timers."""
        self.resync.close()
        self._results.close()
        self.status_backoff.close()

    @property
    def connected(self) -> bool:
        """Whether the most important kinds are being watched now."""
        return all(kind in self.informers and self.informers[kind].connected for kind in MAIN_KINDS)

    def sizes(self) -> str:
        """The number of objects of each kind, for the log."""
        sizes = {self.plurals[kind]: len(informer.store) for kind, informer in self.informers.items()}
        return ", ".join(f"{size} {plural}" for plural, size in sizes.items() if size) or "nothing"

    # ---- plans -------------------------------------------------------------------------------------------

    def handle_result(self, op: Operation, result: Result) -> None:
        """Confirm an assumed operation, or undo it, after its result."""
        self._results.handle(op, result)

    def forget(self, op: Operation, why: str = "") -> None:
        """Undo an assumed operation: the model contains the object as the watch last returned it."""
        self.model.forget(op)
        if self.follower is not None:
            self.follower.forgotten(op, why)
        match op:
            case Bind() | Evict() | PodCondition() | Nomination():
                self.refresh("Pod", f"{op.namespace}/{op.name}")
            case PodGroupStatus():
                self.refresh("PodGroup", f"{op.namespace}/{op.name}")
            case NativeGroupStatus():
                self.refresh(op.kind, f"{op.namespace}/{op.name}")
            case QueueStatus():
                self.refresh("Queue", op.name)
            case Event():
                self.quarantine.not_written(op)

    def _retry(self, op: Operation) -> None:
        self.forget(op)
        if isinstance(op, Nomination) and self._is_unwritten(op):
            self.emit_later([op])  # a profile decides about the pod only when something changes for it
        self.changed()

    def _is_unwritten(self, op: Nomination) -> bool:
        """Whether the pod waits, and the watch last returned it with another nomination."""
        pod = self.model.tasks.get(f"{op.namespace}/{op.name}")
        if pod is None or pod.uid != op.uid or pod.status != status.PENDING:
            return False
        return (pod.pod.status.nominated_node_name or "") != op.node

    def _not_emitted(self, operations: list[Operation]) -> None:
        for op in operations:
            self._retry(op)

    def _version(self, kind: str, key: str) -> str | None:
        """The version of an object that the watch last returned."""
        informer = self.informers.get(kind)
        obj = informer.store.get(key) if informer is not None else None
        return obj.metadata.resource_version if obj is not None else None

    def refresh(self, kind: str, key: str) -> None:
        """Put the object into the model again, as the watch last returned it."""
        obj = self.informers[kind].store.get(key)
        if obj is not None and self._filters.accepts(kind, obj):
            # If the newest version could not be decoded, the quarantine remains.
            self._upsert(kind, obj, newest=False)

    # ---- objects -----------------------------------------------------------------------------------------

    def put(self, kind: str, obj: Any) -> None:
        """Put an object into the model that was not read by the watch."""
        if self._filters.accepts(kind, obj):
            self._upsert(kind, obj)

    def accepts(self, kind: str, obj: Any) -> bool:
        """Whether an object belongs into the model."""
        return self._filters.accepts(kind, obj)

    def put_again(self, kind: str, key: str) -> None:
        """Replace what the model has under a key by what the informer has, whatever the model has."""
        namespace, _, name = key.rpartition("/")
        self.model.remove(kind, namespace, name)
        obj = self.informers[kind].store.get(key)
        if obj is not None and self._filters.accepts(kind, obj):
            self._upsert(kind, obj)
        else:
            self.changed()

    def rebuild(self, operations: Iterable[Operation]) -> None:
        """Build the model again from the stores; `operations` are assumed again, and those that are being read."""
        others = {kind: known for kind, known in self.model.others.items() if kind not in self.informers}
        self.model.reset()
        for kind, known in others.items():
            for obj in known.values():
                self.model.upsert(kind, obj)
        for kind, informer in self.informers.items():
            for obj in list(informer.store.values()):
                if self._filters.accepts(kind, obj):
                    self._upsert(kind, obj, newest=False)
        for op in (*operations, *self.resync.operations()):
            self.model.assume(op)
        if self.follower is not None:
            self.follower.rebuilt()
        self.changed()

    def waits_for(self, key: str, uid: str) -> bool:
        """Whether the outcome of a bind or an eviction of a pod is being read, is waited for, or not sent yet."""
        if self.resync.reads(key, uid) or self._results.waits(uid):
            return True
        return self.follower is not None and self.follower.assumes(key, uid)

    def schedule_for(self, scheduler_names: frozenset[str]) -> None:
        """Add the pods of these schedulers to the pods that this scheduler is responsible for."""
        self._filters.scheduler_names |= scheduler_names
        for pod in self.informers["Pod"].store.values():
            if pod.metadata.key not in self.model.tasks and self._filters.accepts("Pod", pod):
                self._upsert("Pod", pod, newest=False)

    def put_undecodable_pod(self, undecodable: Undecodable) -> None:
        """Quarantine a pod that was not read by the watch and cannot be decoded.

        The model gets the last version that could be decoded, with the node and the deletion of this one, so that the
        capacity that the pod uses is counted correctly.
        """
        key = f"{undecodable.namespace}/{undecodable.name}"
        known = self.informers["Pod"].store.get(key)
        if known is not None and known.metadata.uid == undecodable.uid:
            node = scan.texts(undecodable.raw, "spec").get("nodeName", "")
            deleted = scan.texts(undecodable.raw, "metadata").get("deletionTimestamp")
            spec = msgspec.structs.replace(known.spec, node_name=node)
            metadata = msgspec.structs.replace(known.metadata, deletion_timestamp=deleted)
            self.put("Pod", msgspec.structs.replace(known, metadata=metadata, spec=spec))
        self._reject("Pod", undecodable)

    def changed(self) -> None:
        """Report a change of the model."""
        self.events += 1
        self._on_change()

    async def _watch(self, kind: str, informer: Informer[Any]) -> None:
        try:
            await informer.run()
        finally:
            self.ended.add(kind)

    async def _wait_for_lists(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self.informers.values()))
        keep_loaded()
        gc.enable()
        log.info("all kinds are listed: %s", self.sizes())
        self.ready.set()
        self.changed()
        await asyncio.Event().wait()

    def _informer(self, client: Client, entry: Watched) -> Informer[Any]:
        kind, rt = entry.kind, entry.rt

        def add(new: Any) -> None:
            if self._filters.accepts(kind, new):
                valid = self._upsert(kind, new)
                self._follow(kind, None, new if valid else None)
                if valid and kind == "Pod" and not new.spec.node_name:
                    self._on_new_pod(new)

        def update(old: Any, new: Any) -> None:
            if self._filters.accepts(kind, new):
                self._follow(kind, old, new if self._upsert(kind, new) else None)
            elif self._filters.accepts(kind, old):
                self._remove(kind, new)
                self._follow(kind, old, None)

        def delete(last: Any) -> None:
            self._remove(kind, last)
            self._follow(kind, last, None)
            self.status_backoff.deleted(kind, last.metadata.key)
            if kind == "Pod":
                self._results.pod_deleted(last.metadata.uid)
            self._on_delete(kind, last.metadata.namespace, last.metadata.name, last.metadata.uid)

        def in_version(group: Any) -> Any:
            return kinds.in_version(group, informer.rt)

        informer: Informer[Any] = Informer(
            client,
            rt,
            kinds.STRUCTS[rt],
            decode_error=lambda undecodable: self._reject(kind, undecodable),
            decode_error_cleared=lambda key: self.quarantine.release(kind, key),
            prepare=core.detach if kind == "Pod" else in_version if entry.versions else None,
            optional=entry.optional,
            versions=entry.versions,
        )
        return informer.on(add, update, delete)

    def _reject(self, kind: str, undecodable: Undecodable) -> None:
        self.quarantine.put(kind, undecodable.namespace, undecodable.name, undecodable.uid, undecodable.error)

    def _follow(self, kind: str, old: Any, new: Any) -> None:
        if self.follower is not None and (old is not None or new is not None):
            self.follower.changed(kind, old, new)

    def _upsert(self, kind: str, obj: Any, newest: bool = True) -> bool:
        """Put an object into the model; returns whether it is valid."""
        try:
            self.model.upsert(kind, obj)
        except Exception as error:
            # The model raises ValueError for invalid objects; other exceptions are contained in the same way.
            meta, why = obj.metadata, str(error) if isinstance(error, ValueError) else repr(error)
            if not isinstance(error, ValueError):
                log.exception("%s %s cannot be used", kind, meta.key)
            self.quarantine.put(kind, meta.namespace, meta.name, meta.uid, why)
            usable = False
        else:
            if newest:
                self.quarantine.release(kind, obj.metadata.key)
            usable = True
        self.changed()
        return usable

    def _remove(self, kind: str, obj: Any) -> None:
        self.quarantine.release(kind, obj.metadata.key)
        self.model.remove(kind, obj.metadata.namespace, obj.metadata.name)
        self.changed()
