"""JobTraces: what happened to a job and when, from its creation to the binding of its pods. Volcano: none.

A trace ends when every pod of the job that was decided is bound, and at least its minimum. Pods that are created later
(above the minimum, or after a restart) begin another trace. A pod that a profile binds has a trace of its own, also in
a gang. Pure: times are passed in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from volcano_py.api import scheduling
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.plan import Bind, Operation, PodGroupStatus

MOST_JOBS = 10_000
"""Jobs whose times are kept; the oldest one is dropped without a trace."""
MOST_PODS = 100
"""Pods of one trace with a span of their own."""
PARENT = "volcano.sh/traceparent"
"""Annotation of a Job, PodGroup or pod: the W3C trace context of what has submitted it, whose child the trace is."""


@dataclass(frozen=True, slots=True)
class TracedSpan:
    """Times are in seconds since the epoch."""

    name: str
    begin: float
    end: float
    attributes: dict[str, str | int] = field(default_factory=dict)
    spans: tuple[TracedSpan, ...] = ()


@dataclass(slots=True)
class _Times:
    created: float
    enqueued: float = 0.0
    pods: dict[str, tuple[str, str, float, float]] = field(default_factory=dict)
    """By UID of a pod that is bound now: name, node, its creation, and when its node was decided."""
    bound: dict[str, float] = field(default_factory=dict)
    failures: int = 0


class JobTraces:
    """`emit(span, parent)` receives the whole trace of a job, and the trace context of its submitter or an empty
    text."""

    def __init__(self, emit: Callable[[TracedSpan, str], None]) -> None:
        self._emit = emit
        self._jobs: OrderedDict[str, _Times] = OrderedDict()

    def decided(self, operations: Iterable[Operation], model: Cluster, now: float) -> None:
        """Operations were handed to the dispatcher."""
        for op in operations:
            if isinstance(op, PodGroupStatus):
                job = model.jobs.get(f"{op.namespace}/{op.name}")
                if job is not None and op.status.get("phase") == scheduling.INQUEUE:
                    times = self._times(job)
                    times.enqueued = times.enqueued or now
            elif isinstance(op, Bind):
                task = model.tasks.get(f"{op.namespace}/{op.name}")
                made = task.pod.metadata.creation_timestamp if task is not None else None
                created = parse_time(made) if made else now
                if not op.group:
                    self._kept(op.uid, created).pods[op.uid] = (op.name, op.node, created, now)
                elif (job := model.jobs.get(op.group)) is not None:
                    self._times(job).pods[op.uid] = (op.name, op.node, created, now)

    def bind_ended(self, op: Bind, done: bool, model: Cluster, now: float) -> None:
        """A bind was written, or was not."""
        times = self._jobs.get(op.group or op.uid)
        if times is None or op.uid not in times.pods:
            return
        if not done:
            del times.pods[op.uid]
            times.failures += 1
            return
        times.bound[op.uid] = now
        if not op.group:
            del self._jobs[op.uid]
            task = model.tasks.get(f"{op.namespace}/{op.name}")
            self._emit(_trace_of_pod(op, times), task.annotations.get(PARENT, "") if task is not None else "")
            return
        job = model.jobs.get(op.group)
        if job is not None and len(times.bound) == len(times.pods) >= min(job.min_available, len(job.tasks)):
            del self._jobs[op.group]
            self._emit(_trace(job, times), _parent(job))

    def forget(self, namespace: str, name: str) -> None:
        """A PodGroup was deleted."""
        self._jobs.pop(f"{namespace}/{name}", None)

    def _times(self, job: Job) -> _Times:
        return self._kept(job.uid, job.created)

    def _kept(self, key: str, created: float) -> _Times:
        times = self._jobs.get(key)
        if times is None:
            if len(self._jobs) >= MOST_JOBS:
                self._jobs.popitem(last=False)
            times = self._jobs[key] = _Times(created)
        return times


def _trace(job: Job, times: _Times) -> TracedSpan:
    decided = [at for _, _, _, at in times.pods.values()]
    created = max(made for _, _, made, _ in times.pods.values())
    begin = times.created or min(made for _, _, made, _ in times.pods.values())
    end = max(times.bound.values())
    spans = []
    if times.enqueued:
        spans.append(TracedSpan("wait for admission", begin, max(begin, times.enqueued)))
    # Times of creation are whole seconds: none is before the span that it follows.
    ready = max(begin, times.enqueued, min(created, min(decided)))
    if times.enqueued and ready > times.enqueued:
        spans.append(TracedSpan("create pods", times.enqueued, ready))
    spans.append(TracedSpan("wait for nodes", ready, max(ready, min(decided))))
    pods = tuple(
        TracedSpan("bind pod", at, times.bound[uid], {"k8s.pod.name": name, "k8s.pod.uid": uid, "k8s.node.name": node})
        for uid, (name, node, _, at) in [*times.pods.items()][:MOST_PODS]
    )
    spans.append(TracedSpan("bind", min(decided), end, {}, pods))
    attributes: dict[str, str | int] = {
        "k8s.namespace.name": job.namespace,
        "volcano.podgroup.name": job.name,
        "volcano.queue.name": job.queue,
        "volcano.min_available": job.min_available,
        "volcano.pods": len(times.pods),
        "volcano.failed_binds": times.failures,
    }
    return TracedSpan(f"schedule {job.namespace}/{job.name}", begin, end, attributes, tuple(spans))


def _trace_of_pod(op: Bind, times: _Times) -> TracedSpan:
    """The trace of a pod that a profile bound."""
    [(name, node, created, decided)] = times.pods.values()
    begin, end = min(created, decided), times.bound[op.uid]
    attributes: dict[str, str | int] = {
        "k8s.namespace.name": op.namespace,
        "k8s.pod.name": name,
        "k8s.pod.uid": op.uid,
        "k8s.node.name": node,
        "volcano.failed_binds": times.failures,
    }
    spans = (TracedSpan("wait for nodes", begin, decided), TracedSpan("bind", decided, end))
    return TracedSpan(f"schedule {op.namespace}/{name}", begin, end, attributes, spans)


def _parent(job: Job) -> str:
    group = job.pod_group
    found = (group.metadata.annotations or {}).get(PARENT, "") if group is not None else ""
    if found:
        return found
    return next((text for task in job.tasks.values() if (text := task.annotations.get(PARENT, ""))), "")
