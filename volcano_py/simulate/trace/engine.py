"""A trace in virtual time: jobs arrive, cycles decide, jobs end, without waiting for real time.

Time advances in steps of `interval` seconds: the events of one step are followed by one cycle at its end. There is no
cycle without pending jobs and events, and none if a count shows that no pending job can start. An evicted pod is
created again and starts from the beginning.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from math import inf

import numpy as np
from msgspec import Struct

from volcano_py.api import core, scheduling
from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.callbacks import once_each
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.reservations.learned_run_times import LearnedRunTimes
from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind, Evict
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.scheduler.session_close.pod_groups import pod_group_phase
from volcano_py.simulate.trace.cards import NAME, Cards, cards_plugin, take
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob, TraceNode
from volcano_py.simulate.trace.objects import (
    EPOCH,
    GPU_RESOURCE,
    NAMESPACE,
    group_object,
    node_object,
    pod_object,
    queue_object,
)
from volcano_py.simulate.trace.over_time import held_idle
from volcano_py.simulate.trace.quick import is_quick, quick_registry, with_plugin

RESOURCES = ("cpu", "memory", GPU)


class Sample(Struct):
    """The cluster after a cycle, until the next one."""

    time: float
    used: dict[str, int]
    waiting: int
    running: int
    stranded: int
    """Free GPUs on nodes that have no capacity for a typical GPU job."""
    held_idle: float = 0.0
    """Cores (thousandths), or GPUs if there are any, that are idle because they are reserved."""


class Outcome(Struct):
    """The results of a trace. Times are seconds since its start."""

    capacity: dict[str, int]
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    evictions: int = 0
    lost: float = 0.0
    """Core-seconds of evicted pods: what they had run for nothing."""
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
    queues: Sequence[scheduling.Queue] = (),
    quick: bool = True,
) -> Outcome:
    """Run a trace to its end, or until no pending job can start any more.

    `queues`: beside `root` and `default`; a job belongs to the one that is named as its user, or as the queue that the
    trace states, else to `default`. `quick`: leave out what only reports, where the configuration permits it.
    """
    return Engine(jobs, nodes, configuration, interval, seed, registry, queues, quick).run()


class Engine:
    def __init__(
        self,
        jobs: Sequence[TraceJob],
        nodes: Sequence[TraceNode],
        configuration: Configuration,
        interval: float,
        seed: int,
        registry: Registry = REGISTRY,
        queues: Sequence[scheduling.Queue] = (),
        quick: bool = True,
    ) -> None:
        self._jobs = {job.name: job for job in jobs}
        if len(self._jobs) < len(jobs):
            raise TraceError("two jobs of the trace have the same name; give each its own")
        self._arriving = sorted(jobs, key=lambda job: (job.submitted, job.name), reverse=True)
        self._column = {node.name: i for i, node in enumerate(nodes)}
        self._free = np.array([[node.capacity.get(r, 0) for node in nodes] for r in RESOURCES], dtype=np.int64)
        self._models = np.array([node.model for node in nodes])
        self._needs = {job.name: np.array([job.requests.get(r, 0) for r in RESOURCES]) for job in jobs}
        self._typical = _typical(jobs)
        self._conf, self._interval, self._seed = configuration, interval, seed
        self._quick = quick and is_quick(configuration, registry)
        self._registry = quick_registry(registry) if self._quick else registry
        self._cards = Cards(nodes) if any(job.cards for job in jobs) else None
        self._taken: dict[str, list[int]] = {}
        """By pod: its cards."""
        if self._cards is not None:
            self._registry = Registry(self._registry.plugins, self._registry.actions)
            self._registry.plugins[NAME] = cards_plugin(self._cards, self._column, self._jobs)
            self._conf = with_plugin(configuration, NAME)
        self._cluster = Cluster()
        own = {queue.metadata.name: queue for queue in queues}
        for name in ("root", "default"):
            own.setdefault(name, queue_object(name))
        for queue in own.values():
            self._cluster.upsert("Queue", queue)
        self._queues = own.keys()
        for node in nodes:
            self._cluster.upsert("Node", node_object(node))
        self._pods: dict[str, core.Pod] = {}
        self._bound: dict[str, dict[str, str]] = {}
        """By job: the node of each bound pod."""
        self._ends: list[tuple[float, str, int]] = []
        self._attempt: dict[str, int] = {}
        self._begun: dict[str, float] = {}
        self._waiting: dict[str, None] = {}
        self._admitted: set[str] = set()
        """The waiting jobs that enqueue has admitted; the others need a cycle."""
        self._wake = inf
        """When the scheduler needs a cycle without an event."""
        capacity = {r: int(row.sum()) for r, row in zip(RESOURCES, self._free, strict=True)}
        self.used = dict.fromkeys(capacity, 0)
        self.outcome = Outcome(capacity, never=_never_fit(jobs, nodes))

    def run(self) -> Outcome:
        time = 0.0
        while self._arriving or self._ends or self._waiting:
            following = self._next_event(time)
            if following is None and not self.advance(time):
                break  # nothing runs and nothing arrives: pending jobs cannot start any more
            if following is not None:
                steps = max(1, -(-int(following - time) // max(1, int(self._interval))))
                time = max(time + self._interval * steps, following) if following > time else time + self._interval
                self.advance(time)
        return self.outcome

    def _next_event(self, now: float) -> float | None:
        times = [self._arriving[-1].submitted] if self._arriving else []
        times += [self._ends[0][0]] if self._ends else []
        if self._waiting and now < self._wake < inf:
            times.append(self._wake)
        return min(times, default=None)

    def advance(self, time: float) -> bool:
        """Apply the events up to a time, and run a cycle. Returns whether anything was decided."""
        while self._ends and self._ends[0][0] <= time:
            ended, name, attempt = heapq.heappop(self._ends)
            if self._attempt[name] == attempt:
                self._end(name, ended)
        while self._arriving and self._arriving[-1].submitted <= time:
            self._submit(self._arriving.pop())
        if not self._needs_cycle(time):
            self._sample(time)
            return not self._waiting
        now = EPOCH + time
        report = run_once(
            self._cluster, self._conf, now, self._seed, registry=self._registry, report_jobs=not self._quick
        )
        self.outcome.cycles += 1
        self._wake = report.session.next_wake - EPOCH
        if report.faults:
            self.outcome.faults += [f"{f.plugin}.{f.point}: {f.text}" for f, _ in once_each(report.faults)]
        for operation in report.plan:
            if isinstance(operation, Bind):
                self._bind(operation, time)
            elif isinstance(operation, Evict):
                self._evict(operation, time)
        if self._quick:
            self._write_phases(report)
        self._sample(time)
        return bool(report.plan)

    def _needs_cycle(self, time: float) -> bool:
        """Whether a cycle may decide something: a pending job may fit, is not admitted yet, or the time has come
        at which the scheduler needs one."""
        if not self._waiting:
            return False
        if not self._quick or time >= self._wake:
            return True
        if "enqueue" in self._conf.actions and any(name not in self._admitted for name in self._waiting):
            return True
        known: dict[tuple[object, ...], int] = {}
        for name in self._waiting:
            job, needs = self._jobs[name], self._needs[name]
            if job.pods == len(self._bound.get(name, ())):
                continue
            key = (*needs.tolist(), job.models)
            room = known.get(key)
            if room is None:
                needed = needs > 0
                if not needed.any():
                    return True
                each = (self._free[needed] // needs[needed][:, None]).min(axis=0)
                if job.models:
                    each = each[np.isin(self._models, job.models)]
                room = known[key] = int(each[each > 0].sum())
            if room >= job.pods:
                return True
        return False

    def _write_phases(self, report: CycleReport) -> None:
        """Write the phases of PodGroups that changed, which the close of a quick cycle has not done."""
        session = report.session
        for found in session.jobs.touched():
            name = found.name
            phase = pod_group_phase(session, found) or "Pending"
            if phase != found.pod_group.status.phase and name in self._attempt:
                self._cluster.upsert("PodGroup", group_object(self._jobs[name], self._queue_of(name), phase))
            if phase != "Pending":
                self._admitted.add(name)

    def _held_idle(self) -> float:
        """Capacity that is idle because it is reserved."""
        reserved = self._cluster.keep(KeptReservations).reserved
        if not reserved or not self._waiting:
            return 0.0
        table = self._cluster.nodes
        of = GPU if self.outcome.capacity.get(GPU) else "cpu"
        columns = {i: self._column[table.names[i]] for held in reserved for i in held.nodes.tolist()}
        row = table.rows.get(GPU_RESOURCE if of == GPU else of)
        # the node table has thousandths of what the trace counts
        scale = 1000.0 if of == GPU else 1.0
        free = (self._free[RESOURCES.index(of)] * scale).tolist()
        return held_idle(reserved, row, columns, free) / scale

    def _queue_of(self, name: str) -> str:
        job = self._jobs[name]
        return next((queue for queue in (job.user, job.queue) if queue in self._queues), "default")

    def _submit(self, job: TraceJob) -> None:
        self._attempt[job.name] = 0
        self._waiting[job.name] = None
        self._cluster.upsert("PodGroup", group_object(job, self._queue_of(job.name)))
        for index in range(job.pods):
            self._create(job, index)

    def _create(self, job: TraceJob, index: int) -> None:
        pod = pod_object(job, index, self._attempt[job.name])
        self._pods[pod.metadata.name] = pod
        self._cluster.upsert("Pod", pod)

    def _bind(self, operation: Bind, time: float) -> None:
        name = operation.group.partition("/")[2]
        job, bound = self._jobs[name], self._bound.setdefault(name, {})
        bound[operation.name] = operation.node
        self._take(job, operation.name, operation.node, 1)
        pod = self._pods[operation.name]
        pod.spec.node_name, pod.status.phase = operation.node, "Running"
        pod.status.start_time = format_time(EPOCH + time)
        self._cluster.upsert("Pod", pod)
        if len(bound) == job.pods:
            self._waiting.pop(name, None)
            self._admitted.discard(name)
            self.outcome.started.setdefault(name, time)
            self._begun[name] = time
            heapq.heappush(self._ends, (time + job.duration, name, self._attempt[name]))

    def _evict(self, operation: Evict, time: float) -> None:
        name = operation.group.partition("/")[2]
        job = self._jobs[name]
        node = self._bound[name].pop(operation.name)
        self._take(job, operation.name, node, -1)
        self.outcome.evictions += 1
        self.outcome.lost += (time - self._begun.get(name, time)) * job.requests.get("cpu", 0) / 1000
        self._attempt[name] += 1
        self._waiting[name] = None
        self._cluster.remove("Pod", NAMESPACE, operation.name)
        self._create(job, int(operation.name.rpartition("-")[2]))

    def _end(self, name: str, time: float) -> None:
        job = self._jobs[name]
        # its pods are removed at once, so that no session sees that they have succeeded
        self._cluster.keep(LearnedRunTimes).succeeded(self._cluster.jobs[f"{NAMESPACE}/{name}"], EPOCH + time)
        self.outcome.ended[name] = time
        for pod, node in self._bound.pop(name).items():
            self._take(job, pod, node, -1)
            self._cluster.remove("Pod", NAMESPACE, pod)
            del self._pods[pod]
        self._cluster.remove("PodGroup", NAMESPACE, name)
        del self._attempt[name]

    def withdraw(self) -> list[str]:
        """Remove the jobs that wait; returns their names."""
        waiting = list(self._waiting)
        for name in waiting:
            for index in range(self._jobs[name].pods):
                pod = f"{name}-{index}"
                if pod not in self._bound.get(name, ()):
                    self._cluster.remove("Pod", NAMESPACE, pod)
                    del self._pods[pod]
            if not self._bound.get(name):
                self._cluster.remove("PodGroup", NAMESPACE, name)
                self._attempt.pop(name, None)
            del self._waiting[name]
            self._admitted.discard(name)
        return waiting

    def _take(self, job: TraceJob, pod: str, node: str, sign: int) -> None:
        column = self._column[node]
        self._free[:, column] -= sign * self._needs[job.name]
        if self._cards is not None and job.cards:
            if sign > 0:
                self._taken[pod] = take(self._cards.free, column, job)
            else:
                self._cards.free[column, self._taken.pop(pod)] += job.share
        for resource, amount in job.requests.items():
            self.used[resource] += sign * amount

    def _sample(self, time: float) -> None:
        stranded = 0
        if self._typical:
            typical = np.array([self._typical.get(r, 0) for r in RESOURCES])
            gpus = self._free[RESOURCES.index(GPU)]
            stranded = int(gpus[(gpus > 0) & (self._free < typical[:, None]).any(axis=0)].sum())
        waiting, running = len(self._waiting), len(self._bound)
        self.outcome.samples.append(Sample(time, dict(self.used), waiting, running, stranded, self._held_idle()))


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
