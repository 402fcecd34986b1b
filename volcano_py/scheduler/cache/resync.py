"""Reads of pods whose bind or eviction has an unknown outcome. Volcano: the resync worker of the scheduler cache.

The operation stays assumed, and the pod keeps its capacity, until a response of the API server shows the outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from volcano_py.api import core, kinds
from volcano_py.kube import Backoff, Client, KubeError, NotFound, Undecodable, scan, wire
from volcano_py.kube.errors import InvalidResponse
from volcano_py.scheduler.model.plan import Bind, Evict, Operation

log = logging.getLogger(__name__)

REQUEST_GRACE = 2.0
"""Seconds before a pod with an unknown outcome is read: the request may still be in flight."""
MAX_READS = 16
"""Concurrent reads."""


class Assumptions(Protocol):
    """The part of `Cache` that outcomes change."""

    def forget(self, op: Operation) -> None: ...

    def put(self, kind: str, obj: Any) -> None: ...

    def put_undecodable_pod(self, undecodable: Undecodable) -> None: ...

    def changed(self) -> None: ...


class Resync:
    """Reads each pod until the outcome of its operation is known."""

    client: Client

    def __init__(self, cache: Assumptions, request_grace: float = REQUEST_GRACE) -> None:
        self._cache = cache
        self._request_grace = request_grace
        self._limit = asyncio.Semaphore(MAX_READS)
        self._reads: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._operations: dict[tuple[str, str], Bind | Evict] = {}
        self._failed = asyncio.Event()
        self._error: BaseException = asyncio.CancelledError()

    @property
    def unknown(self) -> int:
        """Number of pods whose bind or eviction has an unknown outcome."""
        return len(self._reads)

    def operations(self) -> list[Bind | Evict]:
        """The operations whose pods are being read."""
        return list(self._operations.values())

    def reads(self, key: str, uid: str) -> bool:
        """Whether a pod is being read."""
        return (key, uid) in self._reads

    async def run(self) -> None:
        """Run until cancelled. Raises the error that ended a read: its pod would keep the capacity forever."""
        await self._failed.wait()
        raise self._error

    def add(self, op: Bind | Evict, undone: Callable[[], None] | None = None) -> None:
        """Read the pod of an operation with an unknown outcome. `undone` is called if the pod shows that the operation
        has not taken effect."""
        key = (f"{op.namespace}/{op.name}", op.uid)
        if key in self._reads:
            return
        self._operations[key] = op
        task = self._reads[key] = asyncio.create_task(self._read(op, undone), name="read of an unknown pod")
        task.add_done_callback(lambda task: self._finished(key, task))

    def close(self) -> None:
        """Stop reading."""
        for task in self._reads.values():
            task.cancel()

    def _finished(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        self._reads.pop(key, None)
        self._operations.pop(key, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = error
            self._failed.set()

    async def _read(self, op: Bind | Evict, undone: Callable[[], None] | None) -> None:
        backoff = Backoff(0.5, 10.0)
        pause = self._request_grace
        while True:
            try:
                await asyncio.sleep(pause)
                async with self._limit:
                    pod = await self._pod(op)
                if not self._resolve(op, pod) and undone is not None:
                    undone()
                return
            except KubeError as error:
                # With many pods to read, one log line about an unreachable server is enough.
                first = next(iter(self._reads)) == (f"{op.namespace}/{op.name}", op.uid)
                log.log(
                    logging.WARNING if first else logging.DEBUG,
                    "%d pods cannot be read yet, retrying: %s",
                    len(self._reads),
                    error,
                )
            except Exception:
                log.exception("pod %s/%s cannot be read yet, retrying", op.namespace, op.name)
            pause = backoff.next()

    async def _pod(self, op: Bind | Evict) -> core.Pod | Undecodable | None:
        try:
            pod: core.Pod = await self.client.get(kinds.POD, op.name, op.namespace, type=core.Pod)
            return pod
        except NotFound:
            return None
        except InvalidResponse as error:
            # The decoder's own error, so that the report is the same as the one of the watch.
            cause = error.__context__
            undecodable = wire.undecodable(error.body, cause if isinstance(cause, Exception) else error)
            if (undecodable.namespace, undecodable.name) != (op.namespace, op.name) or not scan.complete(error.body):
                raise
            return undecodable

    def _resolve(self, op: Bind | Evict, pod: core.Pod | Undecodable | None) -> bool:
        """Confirm or forget the operation, depending on the pod that was read. Returns False if the pod shows that the
        operation has not taken effect."""
        done = True
        uid = "" if pod is None else pod.uid if isinstance(pod, Undecodable) else pod.metadata.uid
        if pod is None or uid != op.uid:
            # The watch returns the deletion, and the object that has the name now.
            self._cache.forget(op)
        elif isinstance(pod, Undecodable):
            self._cache.forget(op)
            self._cache.put_undecodable_pod(pod)
        else:
            bind = isinstance(op, Bind)
            done = bool(pod.spec.node_name) if bind else pod.metadata.deletion_timestamp is not None
            if not done:
                self._cache.forget(op)
            self._cache.put("Pod", core.detach(pod))
        self._cache.changed()
        return done
