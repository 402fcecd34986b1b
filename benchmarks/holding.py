"""What reservations cost a cycle: 20 of them on 5,000 nodes with 50,000 running pods and 2,000 waiting jobs.

Every tenth of the waiting jobs has 20 pods, the others 2. The first cycle computes all plans. Then single changes:
nothing, time, a job that has ended, a job that arrived.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

import click

from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.kernels.choice import use_compiled
from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.scheduler.runtime.collection import keep_loaded, paused
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode
from volcano_py.simulate.trace.objects import EPOCH, NAMESPACE, group_object, node_object, pod_object, queue_object

CONF = """
actions: "enqueue, reserve, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: reservation
    arguments: {reservations: %d, patience: 0s, large-patience: 0s, oldest-first: 0s}
  - name: predicates
  - name: nodeorder
"""
CORES = 64
DAY = 86_400


class Holding:
    """A full cluster and gangs that wait."""

    def __init__(self, nodes: int, running: int, waiting: int, reservations: int) -> None:
        self.cluster = Cluster()
        self.conf: Configuration = load(CONF % reservations if reservations else _without(), REGISTRY.actions)
        self.now = EPOCH + 2 * DAY
        self._random = random.Random(1)
        for name in ("root", "default"):
            self.cluster.upsert("Queue", queue_object(name))
        names = [f"n{i:05d}" for i in range(nodes)]
        for name in names:
            self.cluster.upsert("Node", node_object(TraceNode(name, {"cpu": CORES * 1000, "memory": CORES * 4096})))
        each = running // nodes
        self.running: list[TraceJob] = []
        for i in range(running // 10):  # jobs of ten pods, on ten nodes
            job = self._job(f"r{i:05d}", DAY, 10, CORES // each, DAY + self._random.randrange(600, DAY))
            self.running.append(job)
            self.cluster.upsert("PodGroup", group_object(job, "default", "Running"))
            for k in range(10):
                pod = pod_object(job, k)
                pod.spec.node_name = names[(i * 10 + k) % nodes]
                pod.status.phase = "Running"
                pod.status.start_time = format_time(EPOCH + DAY + i % 3600)
                self.cluster.upsert("Pod", pod)
        for i in range(waiting):
            self.arrive(f"w{i:05d}", DAY + i, 20 if i % 10 == 0 else 2)

    def _job(self, name: str, at: float, pods: int, cores: int, limit: int) -> TraceJob:
        return TraceJob(name, at, limit, "u", pods, {"cpu": cores * 1000, "memory": 1}, (), float(limit))

    def arrive(self, name: str, at: float, pods: int) -> None:
        job = self._job(name, at, pods, CORES // 2, self._random.randrange(60, DAY))
        self.cluster.upsert("PodGroup", group_object(job, "default", "Inqueue"))
        for k in range(pods):
            self.cluster.upsert("Pod", pod_object(job, k))

    def end_one(self) -> None:
        """A job of ten pods ends."""
        job = self.running.pop()
        for k in range(job.pods):
            self.cluster.remove("Pod", NAMESPACE, f"{job.name}-{k}")
        self.cluster.remove("PodGroup", NAMESPACE, job.name)

    def cycle(self) -> float:
        with paused():
            began = time.perf_counter()
            report = run_once(self.cluster, self.conf, self.now, seed=1)
            took = time.perf_counter() - began
        assert not report.faults, report.faults
        return took


def _without() -> str:
    lines = [line for line in (CONF % 0).splitlines() if "reservation" not in line]
    return "\n".join(lines).replace("enqueue, reserve, ", "enqueue, ")


def changes(own: Holding) -> Iterator[tuple[str, Callable[[int], None]]]:
    def later(_: int) -> None:
        own.now += 1

    def ended(_: int) -> None:
        own.now += 1
        own.end_one()

    def arrived(i: int) -> None:
        own.now += 1
        own.arrive(f"x{i}", own.now - EPOCH, 2)

    yield "nothing", lambda _: None
    yield "a second later", later
    yield "a job ended", ended
    yield "a job arrived", arrived


@click.command()
@click.option("--nodes", default=5_000)
@click.option("--running", default=50_000)
@click.option("--waiting", default=2_000)
@click.option("--reservations", default=20, help="0: without plugin and action.")
@click.option("--repeat", default=5)
def holding(nodes: int, running: int, waiting: int, reservations: int, repeat: int) -> None:
    """What reservations cost a cycle of a large cluster."""
    use_compiled()
    own = Holding(nodes, running, waiting, reservations)
    keep_loaded()
    print(f"{'first cycle':16} {own.cycle():8.3f} s")
    print(f"{'second cycle':16} {own.cycle():8.3f} s")
    for name, change in changes(own):
        times = []
        for i in range(repeat):
            change(i)
            times.append(own.cycle())
        print(f"{name:16} {statistics.median(times):8.3f} s")
    print(f"{len(own.cluster.keep(KeptReservations).reserved)} reservations")


if __name__ == "__main__":
    holding()
