"""Runs the queue reconciler."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import msgspec

from volcano_py.api import bus
from volcano_py.api.bus import Command
from volcano_py.api.kinds import PODGROUP, QUEUE
from volcano_py.api.meta import format_time
from volcano_py.api.scheduling import ROOT_QUEUE, PodGroup, Queue, QueueStatus
from volcano_py.controllers import metrics
from volcano_py.controllers.admission import MirroredQueues, problems_of_queue
from volcano_py.controllers.failures import from_outside
from volcano_py.controllers.instructions import Emit, Patch
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.queue.counters import Pace, count
from volcano_py.controllers.queue.reconcile import Blocked, Observed, differ, reconcile
from volcano_py.controllers.queue.single_pods import SinglePods
from volcano_py.controllers.runner import Cluster
from volcano_py.kube.errors import KubeError
from volcano_py.kube.remedies import for_denied
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

COUNTED_AFTER = 0.2
"""Seconds in which changes of what a queue contains are collected: each pod changes it several times."""


class QueueController:
    name = "queue-controller"

    def __init__(
        self,
        cluster: Cluster,
        *,
        workers: int = 5,
        max_requeue: int = 15,
        single_pods_of: Sequence[str] = (),
        workloads: bool = True,
    ) -> None:
        """An action is dropped after `max_requeue` failed attempts; a negative number means never. `single_pods_of`:
        the schedulers whose pods without a PodGroup count as well. `workloads`: also those of ReplicaSets and
        StatefulSets inherit their queue (feature gate WorkLoadSupport)."""
        self.queue: WorkQueue[str] = WorkQueue()
        self.workers = workers
        self._max_requeue = max_requeue
        self._executor = cluster.executor
        self._pending: dict[str, dict[str, None]] = {}
        self._pace = Pace()
        self._queues: Mirror[Queue] = cluster.mirror(QUEUE)
        self._podgroups: Mirror[PodGroup] = cluster.mirror(PODGROUP)
        self._queues.on(
            add=self._related,
            update=self._queue_updated,
            delete=self._queue_deleted,
        )
        self._podgroups.on(
            add=self._podgroup_changed,
            update=self._podgroup_updated,
            delete=self._podgroup_changed,
        )

        self._singles = SinglePods(cluster, single_pods_of, workloads, self._count_again)
        self._awaited = self._singles.mirrors

    def command(self, command: Command) -> None:
        """Process an action that a user requested."""
        assert command.target is not None
        self._add(command.target.name, command.action)

    async def process(self, key: str) -> None:
        """Execute the requested actions of one queue, in order."""
        actions = self._pending.pop(key, {})
        for action in list(actions):
            queue = self._queues.get(key)
            if queue is None:
                break
            try:
                await self._do(queue, action)
            except (KubeError, Blocked, ValueError) as error:
                lasting = not (isinstance(error, KubeError) and from_outside(error))
                if lasting and self._max_requeue == self.queue.retries(key):
                    self._executor.record(queue, Emit("Warning", action, f"{action} failed: {error}"))
                if lasting and 0 <= self._max_requeue <= self.queue.retries(key) and action != bus.SYNC_QUEUE:
                    # Not the synchronization: nothing would begin it again when the reason has ended.
                    log.warning("queue %s: %s abandoned: %s", key, action, error)
                    del actions[action]
                    continue
                log.info("queue %s: %s: %s%s; trying again", key, action, error, for_denied(str(error)))
                self._pending[key] = actions | self._pending.get(key, {})
                self.queue.add_rate_limited(key)
                return
            del actions[action]
        self.queue.forget(key)

    async def _do(self, queue: Queue, action: str) -> None:
        name = queue.metadata.name
        groups = self._podgroups.by_index(name)
        counters = count(groups)
        singles = self._singles.count(name)
        for field, number in singles.items():
            counters[field] += number
        for phase, gauge in metrics.QUEUE_POD_GROUPS.items():
            gauge.labels(name).set(counters[phase.lower()])
        steady = time.monotonic()  # the time of day may be set back
        wait = self._pace.wait(name, len(self._queues), steady)
        seen = Observed(
            queue=queue,
            members=len(groups) + sum(singles.values()),
            parent=self._queues.get(queue.spec.parent) if queue.spec.parent else None,
            children=self._queues.by_index(name),
            problems=problems_of_queue(queue, MirroredQueues(self._queues)),
            now=format_time(time.time()),
            counters=counters,
            counters_are_due=not wait,
        )
        instructions, follow_ups = reconcile(seen, action)
        await self._executor.carry_out(instructions, queue)
        if any(isinstance(one, Patch) and one.subresource for one in instructions):
            self._pace.wrote(name, steady)
        elif wait and differ(queue, counters):
            self._pending.setdefault(name, {})[bus.SYNC_QUEUE] = None
            self.queue.add_after(name, wait)
        for follow_up in follow_ups:
            self._add(follow_up.queue, follow_up.action)

    def _add(self, name: str, action: str) -> None:
        self._pending.setdefault(name, {})[action] = None
        self.queue.add(name)

    def _count_again(self, name: str) -> None:
        self._pending.setdefault(name, {})[bus.SYNC_QUEUE] = None
        self.queue.add_after(name, COUNTED_AFTER)

    def _queue_updated(self, old: Queue, new: Queue) -> None:
        if old.spec != new.spec:
            self._related(old)
            self._related(new)
        elif _written_here(old) != _written_here(new):
            # Also the watch's answer to an own write that has failed, and took effect after the PodGroups were counted.
            self._count_again(new.metadata.name)

    def _related(self, queue: Queue) -> None:
        """Enqueue a queue, and the queues whose validity depends on it."""
        self._add(queue.metadata.name, bus.SYNC_QUEUE)
        self._others(queue)

    def _others(self, queue: Queue) -> None:
        name = queue.metadata.name
        siblings = self._queues.by_index(queue.spec.parent) if queue.spec.parent not in ("", ROOT_QUEUE) else ()
        for other in (*siblings, *self._queues.by_index(name)):
            self._add(other.metadata.name, bus.SYNC_QUEUE)
        if self._queues.get(queue.spec.parent) is not None:
            self._add(queue.spec.parent, bus.SYNC_QUEUE)

    def _queue_deleted(self, queue: Queue) -> None:
        self._pending.pop(queue.key, None)
        metrics.forget_queue(queue.key)
        self._pace.drop(queue.key)
        self._others(queue)

    def _podgroup_changed(self, podgroup: PodGroup) -> None:
        self._count_again(podgroup.spec.queue)

    def _podgroup_updated(self, old: PodGroup, new: PodGroup) -> None:
        moved = old.spec.queue != new.spec.queue
        if moved:
            self._podgroup_changed(old)
        if moved or old.status.phase != new.status.phase:
            self._podgroup_changed(new)


def _written_here(queue: Queue) -> QueueStatus:
    """The part of the status that this controller writes; the rest is the scheduler's."""
    return msgspec.structs.replace(queue.status, allocated=None, reservation=None)
