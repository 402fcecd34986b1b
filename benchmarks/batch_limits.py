"""What the rule of conf/volcano-scheduler-batch.conf reaches if users state better limits, in the small model.

    python -m benchmarks.batch_limits --seeds 20          # docs/decisions-over-time.md has the table

Each job's limit is its run time times a power of the factor by which the stated limit exceeds it: 1 is what the traces
state, 0 is the exact run time. The last rows vary the order of large jobs with the stated limits. Ratios are those of
benchmarks/reservations.py; EASY has the limits that the traces state. The seeds are not those of that benchmark.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import median

import numpy as np

from benchmarks.batch_model import BatchJob, Model, easy, read
from benchmarks.batch_traces import HOUR, batch_trace

NODES, CORES = 64, 64
FIRST_SEED = 101
LARGE, OLDEST, SHORTEST = 0.125, 80.0 * HOUR, 60.0
GOALS = (0.5, 1.0, 1.2, 1.15, 1.15)
EACH = (float("inf"), 1.0, 1.2, 1.3, 1.3)
"""What each trace must reach; the first column has a goal for the median only."""
HEAD = ("p95/today", "p95/EASY", "longest/EASY", "mean/today", "slowdown/today")


def size(job: BatchJob) -> float:
    return job.pods * job.cores / (NODES * CORES)


def rule(exponent: float) -> Model:
    """The rule of the configuration; `exponent` is its limit-exponent."""

    def rank(job: BatchJob, now: float) -> tuple[float, ...]:
        waited = now - job.submitted
        if waited >= OLDEST:
            return 0, job.submitted
        return 1, -waited / max(job.limit, SHORTEST) ** exponent

    def first(waiting: list[BatchJob], now: float) -> list[BatchJob]:
        found = [job for job in waiting if size(job) >= LARGE or now - job.submitted >= OLDEST]
        return sorted(found, key=lambda job: rank(job, now))

    def order(job: BatchJob, now: float) -> tuple[float, ...]:
        old = now - job.submitted >= OLDEST
        return (0, job.submitted) if old else (1, size(job) * max(job.limit, SHORTEST) ** 0.5)

    def holds(job: BatchJob, now: float, start: float) -> bool:
        waited = now - job.submitted
        return waited >= OLDEST or waited >= start - now

    return Model(NODES, CORES, order, first, holds=holds)


def outcome(model: Model, jobs: list[BatchJob], interval: float) -> tuple[float, float, float, float]:
    """95th percentile of the largest 5 %, longest, mean wait, mean bounded slowdown."""
    started = model.run(jobs, interval)
    waits = {job.name: started[job.name] - job.submitted for job in jobs}
    largest = sorted(jobs, key=lambda job: (-size(job), job.submitted, job.name))[: len(jobs) // 20]
    slowdowns = [max(1.0, (waits[job.name] + job.duration) / max(job.duration, 10.0)) for job in jobs]
    p95 = float(np.percentile([waits[job.name] for job in largest], 95))
    return p95, max(waits.values()), float(np.mean(list(waits.values()))), float(np.mean(slowdowns))


class Trace:
    def __init__(self, seed: int) -> None:
        self.jobs = read(batch_trace(seed, 0.90 + 0.005 * (seed % 11), nodes=NODES, cores=CORES), CORES)
        self.interval = max(1.0, (self.jobs[-1].submitted - self.jobs[0].submitted) / 2000)
        self.today = outcome(Model(NODES, CORES), self.jobs, self.interval)
        self.easy = outcome(Model(NODES, CORES, first=easy), self.jobs, self.interval)

    def ratios(self, exponent: float, knowledge: float) -> tuple[float, ...]:
        jobs = [
            replace(job, limit=job.duration * (job.limit / job.duration) ** knowledge) if job.duration else job
            for job in self.jobs
        ]
        found = outcome(rule(exponent), jobs, self.interval)
        return (
            found[0] / self.today[0],
            found[0] / self.easy[0],
            found[1] / self.easy[1],
            found[2] / self.today[2],
            found[3] / self.today[3],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    traces = [Trace(seed) for seed in range(FIRST_SEED, FIRST_SEED + given.seeds)]
    print("| limits | limit-exponent |", " | ".join(HEAD), "|")
    rows = [(power, 1.0) for power in (0.0, 0.25, 0.5, 0.75, 1.0)] + [(1.0, e) for e in (0.0, 0.25, 0.5, 0.75)]
    for power, exponent in rows:
        columns = list(zip(*(trace.ratios(exponent, power) for trace in traces), strict=True))
        cells = []
        for values, most in zip(columns, EACH, strict=True):
            missed = sum(value > most for value in values)
            cells.append(f"{median(values):.2f}" + (f" ({missed})" if most < float("inf") else ""))
        print(f"| {power:g} | {exponent:g} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
