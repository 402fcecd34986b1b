"""AssumedPlans: the model counts sent operations as done until events confirm them or a result undoes them. Volcano:
AddBindTask and Evict of the scheduler cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby

import msgspec

from volcano_py.api import core
from volcano_py.api import scheduling as api
from volcano_py.scheduler.model.changes import Changes
from volcano_py.scheduler.model.claims.pod_claims import PodClaims
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.native_gangs import NativeGroups
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.placed_pods import PlacedPods
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
    RemoveGate,
)
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.reported import Reported


class AssumedPlans(ABC):
    """The part of `Cluster` that plans change."""

    tasks: dict[str, Task]
    jobs: dict[str, Job]
    queues: dict[str, Queue]
    statuses: bytearray
    placed: PlacedPods
    claims: PodClaims
    reported: Reported
    native_groups: NativeGroups
    job_changes: Changes
    dirty: bool

    @abstractmethod
    def _put_pod(self, pod: core.Pod) -> None: ...

    @abstractmethod
    def _drop_task(self, key: str) -> None: ...

    @abstractmethod
    def _nominate(self, key: str, node: str) -> None: ...

    def assume(self, operation: Operation) -> None:
        """Count an operation that was handed to the dispatcher as done. Volcano: AddBindTask, Evict of the cache."""
        match operation:
            case Bind():
                self._annotate(operation)
                self._assume(operation.namespace, operation.name, operation.uid, status.BINDING, operation.node)
                self.claims.assume(operation)
            case Evict():
                self._assume(operation.namespace, operation.name, operation.uid, status.RELEASING, None)
            case RemoveGate():
                key = f"{operation.namespace}/{operation.name}"
                if key in self.tasks:
                    self.reported.gates_removed[key] = operation.uid
            case PodCondition():
                key = f"{operation.namespace}/{operation.name}"
                if key in self.tasks:
                    self.reported.conditions[key] = (operation.reason, operation.message)
                    if operation.nominated_node:
                        self._nominate(key, operation.nominated_node)
            case Nomination():
                key = f"{operation.namespace}/{operation.name}"
                self._nominate(key, operation.node if key in self.tasks else "")
            case PodGroupStatus():
                status_ = msgspec.convert(operation.status, api.PodGroupStatus)
                self.assume_status(f"{operation.namespace}/{operation.name}", status_)
            case NativeGroupStatus():
                self.native_groups.assume(operation)
            case Event():
                self.reported.events[operation.kind, f"{operation.namespace}/{operation.name}"] = operation.message
            case QueueStatus():
                queue = self.queues.get(operation.name)
                if queue is not None:
                    allocated: core.ResourceList = dict(operation.allocated)
                    new_status = msgspec.structs.replace(queue.object.status, allocated=allocated)
                    queue.object = msgspec.structs.replace(queue.object, status=new_status)

    def reserve(self, bind: Bind) -> None:
        """Count the writes before a bind as done, so that the volumes and devices are for its pod only; the pod itself
        is not bound yet."""
        self.claims.assume(bind)

    def release(self, bind: Bind) -> None:
        """Undo `reserve`."""
        self.claims.forget(bind)

    def assume_binds(self, binds: Sequence[Bind]) -> None:
        """Count binds of pending tasks as done; as `assume` for each of them."""
        tasks = []
        for bind in binds:
            task = self.tasks.get(f"{bind.namespace}/{bind.name}")
            if task is None or task.status != status.PENDING or bind.annotations or bind.steps:
                self.assume(bind)
            elif task.pod.metadata.uid == bind.uid:
                task.status = self.statuses[task.slot] = status.BINDING
                task.node = bind.node
                tasks.append(task)
        moved = []
        for (uid, _), group in groupby(tasks, key=lambda t: (t.job, t.spec_class.id)):
            equal = list(group)
            job = self.jobs.get(uid)
            if job is not None:
                job.moved(equal[0], status.PENDING, status.BINDING, len(equal))
                moved.append(uid)
        self.job_changes.add_all(moved)
        self.placed.put_all(tasks)

    def assume_status(self, uid: str, new: api.PodGroupStatus) -> None:
        """Count a PodGroup status that was sent as written."""
        job = self.jobs.get(uid)
        if job is not None and job.pod_group is not None:
            changed = job.pod_group.status.phase != new.phase
            job.pod_group = msgspec.structs.replace(job.pod_group, status=new)
            if changed:
                self.job_changes.add(uid)

    def forget(self, operation: Operation) -> None:
        """Undo an assumption: the object is again as the API server last returned it."""
        self.dirty = True
        match operation:
            case Bind() | Evict():
                if isinstance(operation, Bind):
                    self.claims.forget(operation)
                key = f"{operation.namespace}/{operation.name}"
                task = self.tasks.get(key)
                expected = status.BINDING if isinstance(operation, Bind) else status.RELEASING
                if task is not None and task.pod.metadata.uid == operation.uid and task.status == expected:
                    pod = task.pod
                    self._drop_task(key)
                    self._put_pod(pod)
            case PodCondition():
                self.reported.conditions.pop(f"{operation.namespace}/{operation.name}", None)
            case RemoveGate():
                self.reported.gates_removed.pop(f"{operation.namespace}/{operation.name}", None)
            case Event():
                # It was not written, so it can be emitted again.
                self.reported.events.pop((operation.kind, f"{operation.namespace}/{operation.name}"), None)

    def _annotate(self, bind: Bind) -> None:
        """Add the annotations of a Binding to the pod: they contain its devices."""
        task = self.tasks.get(f"{bind.namespace}/{bind.name}")
        if bind.annotations and task is not None and task.uid == bind.uid:
            task.assigned = bind.annotations

    def _assume(self, namespace: str, name: str, uid: str, new: int, node: str | None) -> None:
        task = self.tasks.get(f"{namespace}/{name}")
        if task is None or task.pod.metadata.uid != uid or (task.status == new and node in (None, task.node)):
            return
        job = self.jobs.get(task.job)
        if job is not None:
            job.moved(task, task.status, new)
            self.job_changes.add(task.job)
        had_capacity, was = task.takes_capacity, task.status
        task.status = new
        self.statuses[task.slot] = new
        if node is not None:
            task.node = node
        self.placed.changes.add(task.node)
        if task.takes_capacity and not had_capacity:
            self.placed.put(task)
        elif new == status.RELEASING and was != status.RELEASING:
            self.placed.release(task)
