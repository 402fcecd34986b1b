"""A small model of batch scheduling that shares no code with the scheduler: nodes are numbers of cores, jobs are gangs.

It has two orders. `today`: in the order of submission, a job that does not fit is passed. `easy`: the same with EASY
backfill, which reserves for the first job that does not fit; a job may pass it only if that does not delay it. The
benchmark of `reservation` compares the scheduler with both.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class BatchJob:
    name: str
    submitted: float
    duration: float
    limit: float
    """As the user states it."""
    pods: int
    cores: int
    """Of each pod."""


@dataclass
class Reserved:
    """Nodes that are held for a job from a time on: the cores of each."""

    start: float
    until: float
    cores: dict[int, int]


@dataclass
class Model:
    """`order` sorts the waiting jobs at a time; `first` selects those that start before the others: nodes are reserved
    for the first `most` of these that do not fit, if `holds` agrees."""

    nodes: int
    cores: int
    order: Callable[[BatchJob, float], tuple[float, ...]] = lambda job, _: (job.submitted,)
    first: Callable[[list[BatchJob], float], list[BatchJob]] = lambda waiting, now: []
    most: int = 1
    holds: Callable[[BatchJob, float, float], bool] = lambda job, now, start: True
    """Whether nodes are held for a job now that can start at a time."""
    free: list[int] = field(default_factory=list)
    running: dict[str, tuple[float, dict[int, int]]] = field(default_factory=dict)
    """By job: its expected end, and its cores by node."""
    started: dict[str, float] = field(default_factory=dict)

    def run(self, jobs: Sequence[BatchJob], interval: float = 0.0) -> dict[str, float]:
        """When each job starts. `interval`: events are noticed at its multiples only."""
        self.free = [self.cores] * self.nodes
        arriving = sorted(jobs, key=lambda j: (j.submitted, j.name), reverse=True)
        ends: list[tuple[float, str]] = []
        waiting: list[BatchJob] = []
        while arriving or ends:
            now = min(arriving[-1].submitted if arriving else float("inf"), ends[0][0] if ends else float("inf"))
            if interval:
                now = -(-now // interval) * interval
            while ends and ends[0][0] <= now:
                _, cores = self.running.pop(heapq.heappop(ends)[1])
                for node, count in cores.items():
                    self.free[node] += count
            while arriving and arriving[-1].submitted <= now:
                waiting.append(arriving.pop())
            for job in self.start(waiting, now):
                heapq.heappush(ends, (now + job.duration, job.name))
            waiting = [job for job in waiting if job.name not in self.started]
        return self.started

    def start(self, waiting: list[BatchJob], now: float) -> list[BatchJob]:
        """Start what fits; returns the started jobs."""
        found: list[BatchJob] = []
        reserved: list[Reserved] = []
        waiting.sort(key=lambda job: self.order(job, now))
        for job in self.first(waiting, now):
            if len(reserved) == self.most:
                break
            if self._start_one(job, now, reserved):
                found.append(job)
            elif (held := self.reservation(job, now, reserved)) is not None and self.holds(job, now, held.start):
                reserved.append(held)
        found += [job for job in waiting if job.name not in self.started and self._start_one(job, now, reserved)]
        return found

    def _start_one(self, job: BatchJob, now: float, reserved: Sequence[Reserved]) -> bool:
        cores = self.place(job, now, reserved)
        if cores is None:
            return False
        for node, count in cores.items():
            self.free[node] -= count
        self.running[job.name] = now + job.limit, cores
        self.started[job.name] = now
        return True

    def place(self, job: BatchJob, now: float, reserved: Sequence[Reserved]) -> dict[int, int] | None:
        """The fullest nodes that have room for the job now, without those whose reservation it would delay."""
        room = {n: free // job.cores for n, free in enumerate(self.free) if free >= job.cores}
        if sum(room.values()) < job.pods:
            return None
        for held in reserved:
            if now + job.limit <= held.start:
                continue
            later = self.free_at(held.start)
            for node, count in held.cores.items():
                if node in room:
                    room[node] = min(room[node], (later[node] - count) // job.cores)
        if sum(room.values()) < job.pods:
            return None
        cores: dict[int, int] = {}
        left = job.pods
        for node in sorted(room, key=lambda n: (self.free[n], n)):
            count = min(left, max(0, room[node]))
            if count:
                cores[node] = count * job.cores
                left -= count
        return cores

    def free_at(self, time: float) -> list[int]:
        """The cores that are expected to be free at a time, without reservations."""
        free = list(self.free)
        for end, cores in self.running.values():
            if end <= time:
                for node, count in cores.items():
                    free[node] += count
        return free

    def reservation(self, job: BatchJob, now: float, others: Sequence[Reserved]) -> Reserved | None:
        """The earliest time at which the job is expected to fit beside the reservations of others, and its nodes."""
        times = sorted({now, *(end for end, _ in self.running.values() if end > now), *(o.until for o in others)})
        for time in times:
            free = self.free_at(time)
            for other in others:
                if other.until > time and other.start < time + job.limit:
                    for node, count in other.cores.items():
                        free[node] -= count
            room = {n: count // job.cores for n, count in enumerate(free) if count >= job.cores}
            if sum(room.values()) < job.pods:
                continue
            cores: dict[int, int] = {}
            left = job.pods
            # nodes that are free now serve other jobs until then
            for node in sorted(room, key=lambda n: (self.free[n], free[n], n)):
                count = min(left, room[node])
                if count:
                    cores[node] = count * job.cores
                    left -= count
            return Reserved(time, time + job.limit, cores)
        return None


def easy(waiting: list[BatchJob], now: float) -> list[BatchJob]:
    """EASY: in the order of submission, and the first job that does not fit has a reservation."""
    return waiting


def read(text: str, cores: int) -> list[BatchJob]:
    """The jobs of an SWF text: as many pods as nodes are needed, each with its part of the cores."""
    jobs = []
    for line in text.splitlines():
        if line.startswith(";") or not line.strip():
            continue
        fields = line.split()
        size = int(fields[7])
        pods = -(-size // cores)
        limit = float(fields[8]) if float(fields[8]) > 0 else float("inf")
        jobs.append(BatchJob(f"job-{fields[0]}", float(fields[1]), float(fields[3]), limit, pods, -(-size // pods)))
    return jobs
