"""What became of plans. Volcano: the resync worker of the scheduler cache.

The model assumed every operation when it was emitted. `done` needs nothing: the watch shows the rest, and
until then the room stays taken. `conflict` needs nothing either: the watch brings the newer object. What certainly did
not happen is taken back. Where it is unknown, the pod is read, and it keeps its room until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from volcano_py.api import core, kinds
from volcano_py.kube import Backoff, Client, KubeError, NotFound, Refused, scan, wire
from volcano_py.kube.errors import InvalidResponse
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from volcano_py.scheduler.model.reported import Reported

log = logging.getLogger(__name__)

SETTLING = 2.0
"""Seconds before an unknown pod is read: a request may still be on its way to the server."""
READERS = 16
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds for which a pod whose bind or eviction was refused is left alone; doubles with each refusal."""


class Model(Protocol):
    """What is needed of `Cluster`."""

    reported: Reported

    def forget(self, operation: Operation) -> None: ...

    def remove(self, kind: str, namespace: str, name: str) -> None: ...


class Echoes:
    """Takes results from the dispatcher's handle.

    `refresh(kind, key)`, `put(kind, object)` and `put_undecodable(refused)` are the feed's.
    """

    def __init__(
        self,
        client: Client,
        model: Model,
        refresh: Callable[[str, str], None],
        put: Callable[[str, Any], None],
        on_change: Callable[[], None],
        not_written: Callable[[Event], None] = lambda event: None,
        put_undecodable: Callable[[Refused], None] = lambda refused: None,
        settling: float = SETTLING,
        pause: float = FIRST_PAUSE,
    ) -> None:
        self._client = client
        self._model = model
        self._refresh = refresh
        self._put = put
        self._on_change = on_change
        self._not_written = not_written
        self._put_undecodable = put_undecodable
        self._settling = settling
        self._pause = pause
        self._failures: dict[str, int] = {}
        self._later: set[asyncio.TimerHandle] = set()
        self._readers = asyncio.Semaphore(READERS)
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def unknown(self) -> int:
        """Pods that are being read because it is unknown what became of their bind or eviction."""
        return len(self._reading)

    async def run(self) -> None:
        """Until cancelled. Raises what ended a read unexpectedly: the room of its pod would stay taken for ever."""
        await self._broken

    def result(self, op: Operation, result: Result) -> None:
        """One operation has ended."""
        if result.outcome == "conflict":
            return
        if result.outcome in ("done", "superseded"):
            if self._failures and isinstance(op, Bind | Evict):
                self._failures.pop(op.uid, None)
            return
        if result.outcome == "unknown" and isinstance(op, Bind | Evict):
            self._find_out(op)
            return
        if result.outcome == "failed" and isinstance(op, Bind | Evict):
            # What the API server refuses it will refuse again in a moment: without a pause, a pod that cannot
            # be bound would keep scheduler and server busy for nothing.
            times = self._failures[op.uid] = self._failures.get(op.uid, 0) + 1
            pause = min(LONGEST_PAUSE, self._pause * 2 ** (times - 1))
            self._later.add(asyncio.get_running_loop().call_later(pause, self._take_back_now, op))
            return
        self._take_back_now(op)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._failures.pop(uid, None)

    def close(self) -> None:
        """Stop reading."""
        for task in self._reading.values():
            task.cancel()
        for timer in self._later:
            timer.cancel()

    def _take_back_now(self, op: Operation) -> None:
        self._take_back(op)
        self._on_change()
        if len(self._later) > 1000:
            now = asyncio.get_running_loop().time()
            self._later = {timer for timer in self._later if timer.when() >= now}

    def _take_back(self, op: Operation) -> None:
        self._model.forget(op)
        match op:
            case Bind() | Evict() | PodCondition():
                self._refresh("Pod", f"{op.namespace}/{op.name}")
            case PodGroupStatus():
                self._refresh("PodGroup", f"{op.namespace}/{op.name}")
            case QueueStatus():
                self._refresh("Queue", op.name)
            case Event():
                # Not written, so it may be emitted again.
                self._model.reported.events.pop((op.kind, f"{op.namespace}/{op.name}"), None)
                self._not_written(op)

    def _find_out(self, op: Bind | Evict) -> None:
        key = (f"{op.namespace}/{op.name}", op.uid)
        if key in self._reading:
            return
        task = self._reading[key] = asyncio.create_task(self._read(op), name="read of an unknown pod")
        task.add_done_callback(lambda task: self._ended(key, task))

    def _ended(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        self._reading.pop(key, None)
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)

    async def _read(self, op: Bind | Evict) -> None:
        backoff = Backoff(0.5, 10.0)
        pause = self._settling
        while True:
            try:
                await asyncio.sleep(pause)
                async with self._readers:
                    pod = await self._pod(op)
                self._settle(op, pod)
                return
            except KubeError as error:
                # With many pods to read, one line is enough for a server that is away.
                one = next(iter(self._reading)) == (f"{op.namespace}/{op.name}", op.uid)
                log.log(
                    logging.WARNING if one else logging.DEBUG,
                    "%d pods cannot be read yet: %s",
                    len(self._reading),
                    error,
                )
            except Exception:
                log.exception("pod %s/%s cannot be read yet", op.namespace, op.name)
            pause = backoff.next()

    async def _pod(self, op: Bind | Evict) -> core.Pod | Refused | None:
        try:
            pod: core.Pod = await self._client.get(kinds.POD, op.name, op.namespace, type=core.Pod)
            return pod
        except NotFound:
            return None
        except InvalidResponse as error:
            # What the decoder said, so that the report is the same as that of the watch.
            cause = error.__context__
            refused = wire.refuse(error.body, cause if isinstance(cause, Exception) else error)
            if (refused.namespace, refused.name) != (op.namespace, op.name) or not scan.complete(error.body):
                raise
            return refused

    def _settle(self, op: Bind | Evict, pod: core.Pod | Refused | None) -> None:
        uid = "" if pod is None else pod.uid if isinstance(pod, Refused) else pod.metadata.uid
        if pod is None or uid != op.uid:
            # The watch shows the deletion, and the object that has the name now.
            self._take_back(op)
            self._failures.pop(op.uid, None)
        elif isinstance(pod, Refused):
            self._model.forget(op)
            self._put_undecodable(pod)
        else:
            happened = pod.spec.node_name if isinstance(op, Bind) else pod.metadata.deletion_timestamp
            if not happened:
                self._model.forget(op)
            self._put("Pod", core.detach(pod))
        self._on_change()
