"""What the plugin reservation promises, on random small clusters that run to the end.

The check is independent of the scheduler: it follows the plans and the events only. Promises: a job that
takes capacity of a reservation is expected to end before it starts, or leaves enough beside it; and every gang that
fits the empty cluster starts within the bound of docs/decisions-over-time.md.
"""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace import engine
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode

CONF = """
actions: "enqueue, reserve, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodeorder
  - name: reservation
    arguments:
      reservations: {most}
      patience: {patience}s
      large-patience: {large}s
      large-order: {order}
      hold-ratio: {ratio}
      oldest-first: {oldest}s
      backfill-order: {backfill}
"""
STEP = 1.0


class Case:
    """A random cluster, its jobs and its configuration."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.seed = seed
        self.cores = rng.choice((1, 2, 4))
        self.nodes = [TraceNode(f"n{i}", {"cpu": 1000 * self.cores, "memory": 1000}) for i in range(rng.randint(2, 6))]
        self.patience, self.large = rng.choice((0, 20, 60)), rng.choice((0, 10))
        self.oldest, self.most = rng.choice((0, 30, 90)), rng.choice((1, 1, 2, 4))
        self.longest = rng.choice((10, 40))
        self.exact = rng.random() < 0.5
        self.jobs = [self._job(rng, number) for number in range(rng.randint(10, 40))]
        rule = {"order": rng.choice(("size", "slowdown")), "ratio": rng.choice((0, 1, 3))}
        rule["backfill"] = rng.choice(("short", "work"))
        text = CONF.format(most=self.most, patience=self.patience, large=self.large, oldest=self.oldest, **rule)
        self.configuration = configuration(text, False)

    def _job(self, rng: random.Random, number: int) -> TraceJob:
        cores = rng.randint(1, self.cores)
        most = len(self.nodes) * (self.cores // cores)
        pods = rng.randint(1, most) if rng.random() < 0.4 else 1
        limit = rng.randint(1, self.longest)
        duration = limit if self.exact else rng.randint(1, limit)
        requests = {"cpu": 1000 * cores, "memory": 1}
        return TraceJob(f"j{number:02d}", rng.randrange(200), duration, "u", pods, requests, (), float(limit))

    @property
    def bound(self) -> float:
        """As the page derives it: with the wait until it is among the oldest, the jobs before it, one after another,
        and two steps for each."""
        jobs = len(self.jobs)
        return max(self.patience, self.large, self.oldest) + (jobs + 1) * (self.longest + 2 * STEP)


def test_held_nodes_and_the_bound_on_a_few_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    held_nodes_and_the_bound(range(30), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_held_nodes_and_the_bound(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    held_nodes_and_the_bound(range(first, first + 100), monkeypatch)


def held_nodes_and_the_bound(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine.run_once
    used = 0
    for seed in seeds:
        case = Case(seed)
        check = Check(case)

        def watched(cluster, conf, now, *args, check=check, **kwargs):  # type: ignore[no-untyped-def]
            report = run(cluster, conf, now, *args, **kwargs)
            check.look(report, cluster.keep(KeptReservations), now)
            return report

        monkeypatch.setattr(engine, "run_once", watched)
        outcome = engine.replay(case.jobs, case.nodes, case.configuration, STEP)
        assert not outcome.faults, seed
        assert len(outcome.ended) == len(case.jobs), f"seed {seed}: a job that fits never started"
        for job in case.jobs:
            waited = outcome.started[job.name] - job.submitted
            assert waited <= case.bound, f"seed {seed}: {job.name} waited {waited} s, the bound is {case.bound} s"
        used += check.reservations
    assert used > len(seeds), "the clusters are too empty to hold anything"


class Check:
    """Counts, from the plans alone, what each node will have free when a reservation starts."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.jobs = {job.name: job for job in case.jobs}
        self.running: dict[str, tuple[float, dict[str, int]]] = {}
        """By job: its expected end, and its cores by node."""
        self.reservations = 0

    def look(self, report: CycleReport, kept: KeptReservations, now: float) -> None:
        cores: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for operation in report.plan:
            if isinstance(operation, Bind):
                name = operation.group.partition("/")[2]
                cores[name][operation.node] += self.jobs[name].requests["cpu"]
        self.running = {n: r for n, r in self.running.items() if self._began[n] + self.jobs[n].duration > now}
        for name, nodes in cores.items():
            # what the API server stores of a start are whole seconds
            self.running[name] = int(now) + (self.jobs[name].limit or 0), nodes
            self._began[name] = now
        names = [node.name for node in self.case.nodes]
        row = report.session.table.rows["cpu"]
        for held in kept.reserved:
            self.reservations += 1
            job = self.jobs[held.job.partition("/")[2]]
            need = dict(zip(names, np.array(held.amounts[row], dtype=float).tolist(), strict=False))
            assert sum(need.values()) == pytest.approx(job.pods * job.requests["cpu"])
            for node, amount in need.items():
                if not amount:
                    continue
                beyond = {n: c[node] for n, (end, c) in self.running.items() if end > held.start and node in c}
                later = [name for name in beyond if name in cores]
                others = sum(beyond.values())
                if later:
                    free = self.case.cores * 1000 - others
                    text = (
                        f"seed {self.case.seed}: {later} take capacity of {node} that {held.job} has from {held.start}"
                    )
                    assert free >= amount, text

    @property
    def _began(self) -> dict[str, float]:
        return self.__dict__.setdefault("began", {})  # type: ignore[no-any-return]
