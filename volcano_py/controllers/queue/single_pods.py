"""Single pods: the jobs of plain pods without a PodGroup, by queue and phase, as the queue's status counts them. Not in
Volcano, whose pg-controller creates a PodGroup for each.

A job of such pods is Running when one of its pods has a node, Completed when all have ended, and otherwise Pending:
only the scheduler has the phase Inqueue of a job without an object. The queue is computed as the scheduler computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from volcano_py.api import kinds, plain_pods
from volcano_py.api.core import Namespace, Pod, ReplicaSet, StatefulSet
from volcano_py.api.scheduling import DEFAULT_QUEUE
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.podgroup.reconcile import needs_podgroup
from volcano_py.controllers.runner import Cluster

_ENDED = ("Succeeded", "Failed")


class _Job(Struct):
    """The pods of one job, by key, with the phase of each."""

    queue: str
    pods: dict[str, str] = {}
    phase: str = ""


class SinglePods:
    """Follows the pods. `changed(queue)` is called when a counter of a queue has changed."""

    def __init__(
        self, cluster: Cluster, scheduler_names: Sequence[str], workloads: bool, changed: Callable[[str], None]
    ) -> None:
        self._scheduler_names = scheduler_names
        self._changed = changed
        self._jobs: dict[str, _Job] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._owners: dict[str, Mirror[ReplicaSet | StatefulSet]] = {}
        self.mirrors: dict[str, Mirror[Any]] = {}
        """Those that must be listed before counting."""
        if not scheduler_names:
            return
        self._pods: Mirror[Pod] = cluster.mirror(kinds.POD)
        self._namespaces: Mirror[Namespace] = cluster.mirror(kinds.NAMESPACE)
        if workloads:
            self._owners = {rt.kind: cluster.mirror(rt) for rt in (kinds.REPLICASET, kinds.STATEFULSET)}
        self.mirrors = {"Pod": self._pods, "Namespace": self._namespaces, **self._owners}
        self._pods.on(add=self._put, update=lambda old, new: self._put(new), delete=self._drop)
        self._namespaces.on(add=self._namespace_changed, update=lambda old, new: self._namespace_changed(new))
        for mirror in self._owners.values():
            mirror.on(add=self._owner_changed, update=lambda old, new: self._owner_changed(new))

    def count(self, queue: str) -> dict[str, int]:
        """The number of jobs by phase, in the fields of the queue's status."""
        return self._counts.get(queue, {})

    def _put(self, pod: Pod) -> None:
        if not needs_podgroup(pod, self._scheduler_names):
            if pod.spec.scheduler_name in self._scheduler_names:
                self._drop(pod)  # it has got one
            return
        uid = _uid(pod)
        job = self._jobs.get(uid)
        if job is None:
            job = self._jobs[uid] = _Job(self._queue_of(pod), {})
        phase = "completed" if pod.status.phase in _ENDED else "running" if pod.spec.node_name else "pending"
        if job.pods.get(pod.key) != phase:
            job.pods[pod.key] = phase
            self._settle(job)

    def _drop(self, pod: Pod) -> None:
        uid = _uid(pod)
        job = self._jobs.get(uid)
        if job is None or job.pods.pop(pod.key, None) is None:
            return
        if not job.pods:
            del self._jobs[uid]
        self._settle(job)

    def _settle(self, job: _Job) -> None:
        """Count the phase that follows from the pods."""
        found = set(job.pods.values())
        one = next((phase for phase in ("running", "pending", "completed") if phase in found), "")
        self._move(job, job.queue, one)

    def _move(self, job: _Job, queue: str, phase: str) -> None:
        if (job.queue, job.phase) == (queue, phase):
            return
        for name, of, sign in ((job.queue, job.phase, -1), (queue, phase, +1)):
            if of:
                counts = self._counts.setdefault(name, {})
                counts[of] = counts.get(of, 0) + sign
                if not any(counts.values()):
                    del self._counts[name]
                self._changed(name)
        job.queue, job.phase = queue, phase

    def _namespace_changed(self, namespace: Namespace) -> None:
        of = f"{namespace.metadata.name}/"
        for uid, job in self._jobs.items():
            if uid.startswith(of):
                self._find_queue(job)

    def _owner_changed(self, owner: ReplicaSet | StatefulSet) -> None:
        job = self._jobs.get(f"{owner.metadata.namespace}/podgroup-{owner.metadata.uid}")
        if job is not None:
            self._find_queue(job)

    def _find_queue(self, job: _Job) -> None:
        pod = self._pods.get(next(iter(job.pods)))
        if pod is not None:
            self._move(job, self._queue_of(pod), job.phase)

    def _queue_of(self, pod: Pod) -> str:
        inherited = plain_pods.owner_annotations(
            pod, lambda kind, key: self._owners[kind].get(key) if kind in self._owners else None
        )
        queue = plain_pods.queue_of(pod, [inherited] if inherited else []) or DEFAULT_QUEUE
        return plain_pods.queue_of_namespace(queue, self._namespaces.get(pod.metadata.namespace))


def _uid(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{plain_pods.group_name(pod)}"
