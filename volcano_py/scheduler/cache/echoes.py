"""What became of plans. Volcano: the resync worker of the scheduler cache.

The model assumed every operation when it was emitted. `done` needs nothing: the watch shows the rest, and
until then the room stays taken. What surely did not happen is taken back. Where nobody knows, the pod is
read, and it keeps its room until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from volcano_py.api import core, kinds
from volcano_py.kube import Backoff, Client, KubeError, NotFound
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

log = logging.getLogger(__name__)

SETTLING = 2.0
"""Seconds before an unknown pod is read: a request may still be on its way to the server."""
READERS = 16
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds for which a pod whose bind or eviction was refused is left alone; doubles with each refusal."""


class Model(Protocol):
    """What is needed of `Cluster`."""

    notes: dict[tuple[str, str], str]

    def retract(self, operation: Operation) -> None: ...

    def remove(self, kind: str, namespace: str, name: str) -> None: ...


class Echoes:
    """Takes results from the dispatcher's handle. `refresh(kind, key)` and `put(kind, object)` are the
    feed's.
    """

    def __init__(
        self,
        client: Client,
        model: Model,
        refresh: Callable[[str, str], None],
        put: Callable[[str, Any], None],
        on_change: Callable[[], None],
        untold: Callable[[Event], None] = lambda event: None,
        settling: float = SETTLING,
        pause: float = FIRST_PAUSE,
    ) -> None:
        self._client = client
        self._model = model
        self._refresh = refresh
        self._put = put
        self._on_change = on_change
        self._untold = untold
        self._settling = settling
        self._pause = pause
        self._failures: dict[str, int] = {}
        self._later: set[asyncio.TimerHandle] = set()
        self._readers = asyncio.Semaphore(READERS)
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}

    @property
    def unknown(self) -> int:
        """Pods that are being read because nobody knows what became of their bind or eviction."""
        return len(self._reading)

    def hear(self, op: Operation, result: Result) -> None:
        """One operation has ended."""
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
        self._model.retract(op)
        match op:
            case Bind() | Evict() | PodCondition():
                self._refresh("Pod", f"{op.namespace}/{op.name}")
            case PodGroupStatus():
                self._refresh("PodGroup", f"{op.namespace}/{op.name}")
            case QueueStatus():
                self._refresh("Queue", op.name)
            case Event():
                # Not told, so it may be told again.
                self._model.notes.pop((op.kind, f"{op.namespace}/{op.name}"), None)
                self._untold(op)

    def _find_out(self, op: Bind | Evict) -> None:
        key = (f"{op.namespace}/{op.name}", op.uid)
        if key in self._reading:
            return
        task = asyncio.create_task(self._read(op))
        self._reading[key] = task
        task.add_done_callback(lambda _: self._reading.pop(key, None))

    async def _read(self, op: Bind | Evict) -> None:
        await asyncio.sleep(self._settling)
        backoff = Backoff(0.5, 10.0)
        while True:
            try:
                async with self._readers:
                    pod = await self._client.get(kinds.POD, op.name, op.namespace, type=core.Pod)
                break
            except NotFound:
                pod = None
                break
            except (KubeError, ValueError) as error:
                # With many pods to read, one line tells enough of a server that is away.
                level = (
                    logging.WARNING
                    if next(iter(self._reading)) == (f"{op.namespace}/{op.name}", op.uid)
                    else logging.DEBUG
                )
                log.log(level, "%d pods cannot be read yet: %s", len(self._reading), error)
                await asyncio.sleep(backoff.next())
        if pod is None or pod.metadata.uid != op.uid:
            # The watch tells of the deletion, and of whoever has the name now.
            self._take_back(op)
            self._failures.pop(op.uid, None)
        elif (isinstance(op, Bind) and pod.spec.node_name) or (
            isinstance(op, Evict) and pod.metadata.deletion_timestamp
        ):
            self._put("Pod", core.detach(pod))
        else:
            self._model.retract(op)
            self._put("Pod", core.detach(pod))
        self._on_change()
