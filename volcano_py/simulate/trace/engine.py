"""A trace in virtual time: jobs arrive, cycles decide, jobs end, without waiting for real time.

Time advances in steps of `interval` seconds: the events of one step are followed by one cycle at its end. Without
pending jobs and events there is no cycle. An evicted pod is created again and starts from the beginning.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from volcano_py.api import core, names, scheduling
from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.callbacks import once_each
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind, Evict
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob, TraceNode

EPOCH = 1_767_225_600.0
"""The start of every trace, in seconds since the epoch."""
MODEL_LABEL = "gpu-model"
_NAMESPACE = "trace"


class Sample(Struct):
    """The cluster after a cycle, until the next one."""

    time: float
    used: dict[str, int]
    waiting: int
    running: int
    stranded: int
    """Free GPUs on nodes that have no capacity for a typical GPU job."""


class Outcome(Struct):
    """The results of a trace. Times are seconds since its start."""

    capacity: dict[str, int]
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    evictions: int = 0
    cycles: int = 0
    samples: list[Sample] = []
    faults: list[str] = []
    never: dict[str, str] = {}
    """The jobs that do not fit even an empty cluster, and why."""


def replay(
    jobs: Sequence[TraceJob],
    nodes: Sequence[TraceNode],
    configuration: Configuration,
    interval: float,
    *,
    seed: int = 0,
    registry: Registry = REGISTRY,
) -> Outcome:
    """Run a trace to its end, or until no pending job can start any more."""
    return _Engine(jobs, nodes, configuration, interval, seed, registry).run()


class _Engine:
    def __init__(
        self,
        jobs: Sequence[TraceJob],
        nodes: Sequence[TraceNode],
        configuration: Configuration,
        interval: float,
        seed: int,
        registry: Registry,
    ) -> None:
        self._jobs = {job.name: job for job in jobs}
        if len(self._jobs) < len(jobs):
            raise TraceError("two jobs of the trace have the same name; give each its own")
        self._arriving = sorted(jobs, key=lambda job: (job.submitted, job.name), reverse=True)
        self._nodes = {node.name: node for node in nodes}
        self._free = {node.name: dict(node.capacity) for node in nodes}
        self._typical = _typical(jobs)
        self._conf, self._interval, self._seed, self._registry = configuration, interval, seed, registry
        self._cluster = Cluster()
        for name in ("root", "default"):
            queue = {"metadata": {"name": name, "uid": name}, "status": {"state": "Open"}}
            self._cluster.upsert("Queue", from_manifest(scheduling.Queue, queue))
        for node in nodes:
            self._cluster.upsert("Node", from_manifest(core.Node, _node(node)))
        self._pods: dict[str, core.Pod] = {}
        self._bound: dict[str, dict[str, str]] = {}
        """By job: the node of each bound pod."""
        self._ends: list[tuple[float, str, int]] = []
        self._attempt: dict[str, int] = {}
        self._waiting: dict[str, None] = {}
        capacity = {resource: sum(n.capacity.get(resource, 0) for n in nodes) for resource in ("cpu", "memory", GPU)}
        self._used = dict.fromkeys(capacity, 0)
        self._outcome = Outcome(capacity, never=_never_fit(jobs, nodes))

    def run(self) -> Outcome:
        time = 0.0
        while self._arriving or self._ends or self._waiting:
            following = self._next_event()
            if following is None and not self._pass(time):
                break  # nothing runs and nothing arrives: pending jobs cannot start any more
            if following is not None:
                steps = max(1, -(-int(following - time) // max(1, int(self._interval))))
                time = max(time + self._interval * steps, following) if following > time else time + self._interval
                self._pass(time)
        return self._outcome

    def _next_event(self) -> float | None:
        times = [self._arriving[-1].submitted] if self._arriving else []
        times += [self._ends[0][0]] if self._ends else []
        return min(times, default=None)

    def _pass(self, time: float) -> bool:
        """Apply the events up to a time, and run a cycle. Returns whether anything was decided."""
        while self._ends and self._ends[0][0] <= time:
            ended, name, attempt = heapq.heappop(self._ends)
            if self._attempt[name] == attempt:
                self._end(name, ended)
        while self._arriving and self._arriving[-1].submitted <= time:
            self._submit(self._arriving.pop())
        if not self._waiting:
            self._sample(time)
            return True
        report = run_once(self._cluster, self._conf, EPOCH + time, self._seed, registry=self._registry)
        self._outcome.cycles += 1
        self._outcome.faults += [f"{f.plugin}.{f.point}: {f.text}" for f, _ in once_each(report.faults)]
        for operation in report.plan:
            if isinstance(operation, Bind):
                self._bind(operation, time)
            elif isinstance(operation, Evict):
                self._evict(operation)
        self._sample(time)
        return bool(report.plan)

    def _submit(self, job: TraceJob) -> None:
        self._attempt[job.name] = 0
        self._waiting[job.name] = None
        created = format_time(EPOCH + job.submitted)
        metadata = {"name": job.name, "namespace": _NAMESPACE, "uid": job.name, "creationTimestamp": created}
        group = {"metadata": metadata, "spec": {"minMember": job.pods}, "status": {"phase": "Pending"}}
        self._cluster.upsert("PodGroup", from_manifest(scheduling.PodGroup, group))
        for index in range(job.pods):
            pod = from_manifest(core.Pod, _pod(job, index, created))
            self._pods[pod.metadata.name] = pod
            self._cluster.upsert("Pod", pod)

    def _bind(self, operation: Bind, time: float) -> None:
        name = operation.group.partition("/")[2]
        job, bound = self._jobs[name], self._bound.setdefault(name, {})
        bound[operation.name] = operation.node
        self._take(job, operation.node, 1)
        pod = self._pods[operation.name]
        pod.spec.node_name, pod.status.phase = operation.node, "Running"
        self._cluster.upsert("Pod", pod)
        if len(bound) == job.pods:
            self._waiting.pop(name, None)
            self._outcome.started.setdefault(name, time)
            heapq.heappush(self._ends, (time + job.duration, name, self._attempt[name]))

    def _evict(self, operation: Evict) -> None:
        name = operation.group.partition("/")[2]
        job = self._jobs[name]
        node = self._bound[name].pop(operation.name)
        self._take(job, node, -1)
        self._outcome.evictions += 1
        self._attempt[name] += 1
        self._waiting[name] = None
        self._cluster.remove("Pod", _NAMESPACE, operation.name)
        index = int(operation.name.rpartition("-")[2])
        pod = from_manifest(core.Pod, _pod(job, index, format_time(EPOCH + job.submitted), self._attempt[name]))
        self._pods[operation.name] = pod
        self._cluster.upsert("Pod", pod)

    def _end(self, name: str, time: float) -> None:
        job = self._jobs[name]
        self._outcome.ended[name] = time
        for pod, node in self._bound.pop(name).items():
            self._take(job, node, -1)
            self._cluster.remove("Pod", _NAMESPACE, pod)
            del self._pods[pod]
        self._cluster.remove("PodGroup", _NAMESPACE, name)

    def _take(self, job: TraceJob, node: str, sign: int) -> None:
        free = self._free[node]
        for resource, amount in job.requests.items():
            free[resource] = free.get(resource, 0) - sign * amount
            self._used[resource] += sign * amount

    def _sample(self, time: float) -> None:
        typical = self._typical
        stranded = 0
        if typical:
            for free in self._free.values():
                if free.get(GPU, 0) > 0 and any(free.get(r, 0) < amount for r, amount in typical.items()):
                    stranded += free[GPU]
        waiting, running = len(self._waiting), len(self._bound)
        self._outcome.samples.append(Sample(time, dict(self._used), waiting, running, stranded))


def _never_fit(jobs: Sequence[TraceJob], nodes: Sequence[TraceNode]) -> dict[str, str]:
    """The jobs whose pods do not fit the empty nodes at the same time."""
    shapes = Counter((node.model, tuple(sorted(node.capacity.items()))) for node in nodes)
    found: dict[tuple[object, ...], int] = {}
    never: dict[str, str] = {}
    for job in jobs:
        key = (tuple(sorted(job.requests.items())), job.models)
        if key not in found:
            wanted = [(name, amount) for name, amount in job.requests.items() if amount > 0]
            found[key] = sum(
                count * min((dict(have).get(name, 0) // amount for name, amount in wanted), default=1000)
                for (model, have), count in shapes.items()
                if not job.models or model in job.models
            )
        if found[key] < job.pods:
            pods = "1 pod" if job.pods == 1 else f"{job.pods} pods"
            never[job.name] = f"it needs {pods} at the same time, the empty cluster has capacity for {found[key]}"
    return never


def _typical(jobs: Sequence[TraceJob]) -> dict[str, int]:
    """The requests of the median GPU job; empty without GPU jobs."""
    found = sorted((job for job in jobs if job.requests.get(GPU)), key=lambda job: job.requests[GPU])
    return dict(found[len(found) // 2].requests) if found else {}


def _node(node: TraceNode) -> dict[str, Any]:
    have = {**_amounts(node.capacity), "pods": "1000"}
    labels = {"kubernetes.io/hostname": node.name, MODEL_LABEL: node.model}
    return {
        "metadata": {"name": node.name, "uid": node.name, "labels": labels},
        "status": {"allocatable": have, "capacity": have},
    }


def _pod(job: TraceJob, index: int, created: str, attempt: int = 0) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": names.SCHEDULER_NAME,
        "containers": [{"name": "main", "image": "trace", "resources": {"requests": _amounts(job.requests)}}],
    }
    if job.models:
        expression = {"key": MODEL_LABEL, "operator": "In", "values": list(job.models)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {
        "metadata": {
            "name": f"{job.name}-{index}",
            "namespace": _NAMESPACE,
            "uid": f"{job.name}-{index}-{attempt}",
            "creationTimestamp": created,
            "annotations": {names.GROUP_NAME: job.name},
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _amounts(of: dict[str, int]) -> dict[str, str]:
    units = {"cpu": "m", "memory": "Mi", GPU: ""}
    resource_names = {GPU: f"trace/{GPU}"}
    return {resource_names.get(r, r): f"{amount}{units[r]}" for r, amount in of.items() if amount}
