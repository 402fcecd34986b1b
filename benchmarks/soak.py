"""Soak: pods through the sandbox for hours, and whether the programs stay as they are.

Jobs arrive, complete, fail, and are preempted by more important ones; nodes are cordoned, relabelled and replaced. Each
second the memory, descriptors and tasks of each program are read, and for each pod the time from its creation to
its binding. The run is divided into tenths of the pods; the last one must not differ from the second (the first fills
caches) by more than `LIMITS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import click

from benchmarks.cluster import Cluster, cluster, descendants, resident
from benchmarks.control_plane import CONTROLLERS, process
from benchmarks.line_chart import Series, svg
from volcano_py.api.kinds import JOB, NODE, POD, PRIORITYCLASS
from volcano_py.kube.errors import KubeError
from volcano_py.kube.watch import watch_events
from volcano_py.sandbox.volcano import free_port

NODES = 20
WAITING = 500
"""Pods that are submitted or run at a time: more than the nodes have space for, so that some wait, and some are
preempted."""
SIZES = (1, 2, 4, 8)
PARTS = 10
CONF = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
LIMITS = {"memory": (1.10, 8.0), "descriptors": (1.0, 8.0), "tasks": (1.10, 10.0), "latency": (1.5, 0.5)}
"""By what the last tenth may exceed the second one: factor, and addition (MiB, descriptors, tasks, seconds)."""
FULL = 400_000
FILLING = 32.0
"""In a run of fewer pods, MiB by which memory may also grow: the scheduler keeps the last 200,000 changes of jobs
and as many of nodes, which are complete after some 40,000 pods."""

Manifest = dict[str, Any]


@dataclass
class Sample:
    """One second. `pods`: bound so far; the others by program."""

    pods: int
    memory: dict[str, float]
    descriptors: dict[str, float]
    tasks: dict[str, float]


@dataclass
class Course:
    """What was measured. `waits`: number of pods bound before, and seconds from creation to binding."""

    samples: list[Sample] = field(default_factory=list)
    waits: list[tuple[int, float]] = field(default_factory=list)
    bound: int = 0
    failed: int = 0
    preempted: int = 0
    evicted: int = 0
    nodes_replaced: int = 0


def descriptors(pid: int) -> int:
    """The open descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def tenths(course: Course, pods: int) -> list[dict[str, float]]:
    """The means of each tenth of the pods, by `what of program`; p50 and p99 of the latency."""
    rows: list[dict[str, float]] = []
    for part in range(PARTS):
        low, high = part * pods // PARTS, (part + 1) * pods // PARTS
        row: dict[str, float] = {}
        samples = [s for s in course.samples if low <= s.pods < high]
        for what in ("memory", "descriptors", "tasks"):
            for program in sorted({name for s in samples for name in getattr(s, what)}):
                found = [getattr(s, what)[program] for s in samples if program in getattr(s, what)]
                row[f"{what} of {program}"] = statistics.fmean(found)
        waits = sorted(seconds for number, seconds in course.waits if low <= number < high)
        if waits:
            row["latency p50"], row["latency p99"] = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
        rows.append(row)
    return rows


def faults(rows: Sequence[dict[str, float]], pods: int) -> list[str]:
    """What the last tenth exceeds the second one by more than allowed. The server is not one of our programs."""
    second, last = rows[1], rows[-1]
    found = [f"{name}: no value in the second tenth; bind more pods" for name in sorted(set(last) - set(second))]
    for name, before in second.items():
        what = name.split()[0]
        if name.endswith(" of server") or name not in last:
            continue
        factor, more = LIMITS[what]
        more += FILLING if what == "memory" and pods < FULL else 0.0
        if last[name] > before * factor + more:
            found.append(f"{name}: {before:.2f} in the second tenth, {last[name]:.2f} in the last one")
    missing = sorted(set(second) - set(last))
    return found + [f"{name}: no value in the last tenth" for name in missing]


# ---- the load


def job(number: int, rng: random.Random) -> Manifest:
    """A gang; one in ten fails, one in twenty is more important than the others."""
    size = rng.choice(SIZES)
    fails, urgent = rng.random() < 0.1, rng.random() < 0.05
    script = f"sleep {rng.uniform(1, 4):.1f}" + ("; exit 1" if fails else "")
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "1", "memory": "256Mi"}},
    }
    spec: Manifest = {
        "schedulerName": "volcano",
        "minAvailable": size,
        "maxRetry": 1,
        "ttlSecondsAfterFinished": 2,
        "tasks": [
            {
                "name": "main",
                "replicas": size,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            }
        ],
    }
    if urgent:
        spec["priorityClassName"] = "urgent"
    metadata = {"name": f"soak-{number:07d}", "namespace": "default"}
    return {"apiVersion": JOB.api_version, "kind": "Job", "metadata": metadata, "spec": spec}


class _Pods:
    """Follows the pods; `alive`: the names by UID of those that have not ended."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._created: dict[str, float] = {}
        self.alive: dict[str, str] = {}
        self.awaited: set[str] = set()
        """Names of submitted pods that have not been bound yet."""

    async def follow(self, c: Cluster) -> None:
        while True:
            with contextlib.suppress(KubeError):
                async for event in watch_events(c.client, "/api/v1/pods", {}):
                    if isinstance(event.object, dict):
                        self._see(event.type, event.object)

    def _see(self, kind: str, pod: Manifest) -> None:
        uid, status = pod["metadata"]["uid"], pod.get("status") or {}
        if kind == "ADDED":
            self.alive[uid] = pod["metadata"]["name"]
            self._created[uid] = time.monotonic()
        if pod["spec"].get("nodeName") and (since := self._created.pop(uid, None)) is not None:
            self._course.waits.append((self._course.bound, time.monotonic() - since))
            self._course.bound += 1
            self.awaited.discard(pod["metadata"]["name"])
        if status.get("phase") in ("Succeeded", "Failed") or kind == "DELETED":
            if uid in self.alive and status.get("phase") == "Failed":
                self._course.failed += 1
            if uid in self.alive and any(
                row.get("reason") == "PreemptionByScheduler" for row in status.get("conditions") or ()
            ):
                self._course.preempted += 1
            self.alive.pop(uid, None)
        if kind == "DELETED":
            self._created.pop(uid, None)


async def _submit(c: Cluster, course: Course, pods: _Pods, wanted: int, seed: int) -> None:
    rng, number = random.Random(seed), 0
    while course.bound < wanted:
        if len(pods.alive) + len(pods.awaited) > WAITING:
            await asyncio.sleep(0.02)
            continue
        one = job(number, rng)
        number += 1
        try:
            await c.client.create(JOB, one)
        except KubeError:
            continue
        name, size = one["metadata"]["name"], one["spec"]["minAvailable"]
        pods.awaited.update(f"{name}-main-{i}" for i in range(size))


async def _disturb(c: Cluster, course: Course, pods: _Pods, seed: int) -> None:
    """Cordon, relabel and replace nodes, and evict pods."""
    rng = random.Random(seed + 1)
    while True:
        await asyncio.sleep(1.0)
        name = f"node-{rng.randrange(NODES)}"
        action = rng.randrange(4)
        for victim in rng.sample(sorted(pods.alive.values()), min(2, len(pods.alive))):
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim}}
            with contextlib.suppress(KubeError):
                await c.client.create_subresource(POD, victim, "eviction", eviction, "default")
                course.evicted += 1
        with contextlib.suppress(KubeError):
            if action < 2:
                await c.client.patch(NODE, name, {"spec": {"unschedulable": action == 0 or None}})
            elif action == 2:
                await c.client.patch(NODE, name, {"metadata": {"labels": {"soak": str(rng.randrange(9))}}})
            else:
                node = await c.client.get(NODE, name)
                await c.client.delete(NODE, name)
                fresh = {"name": name, "labels": node["metadata"].get("labels") or {}}
                status = {key: node["status"][key] for key in ("capacity", "allocatable")}
                await c.client.create(NODE, {"metadata": fresh, "status": status})
                course.nodes_replaced += 1


async def _sample(programs: dict[str, int], pprof: str, course: Course) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            await asyncio.sleep(1.0)
            dispatcher = next(descendants(programs["scheduler"]), None)
            pids = programs | ({} if dispatcher is None else {"dispatcher": dispatcher})
            tasks: dict[str, float] = {}
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(pprof) as answer:
                    tasks["scheduler"] = (await answer.text()).count("\ntask ")
            with contextlib.suppress(OSError, click.ClickException):
                course.samples.append(
                    Sample(
                        course.bound,
                        {name: resident(pid) for name, pid in pids.items()},
                        {name: float(descriptors(pid)) for name, pid in pids.items()},
                        tasks,
                    )
                )


@contextlib.asynccontextmanager
async def _together(*work: Any) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run(wanted: int, seed: int) -> Course:
    """Bind this number of pods."""
    course = Course()
    async with contextlib.AsyncExitStack() as stack:
        c = await stack.enter_async_context(cluster(NODES, "none", "--node-shape", "cpu=16,memory=256Gi"))
        address = f"127.0.0.1:{free_port()}"
        conf = c.folder / "volcano-scheduler.conf"
        conf.write_text(CONF)
        flags = ("--leader-elect=false", f"--scheduler-conf={conf}", "--enable-pprof", f"--listen-address={address}")
        scheduler = await stack.enter_async_context(process(c, "scheduler", *flags))
        manager = await stack.enter_async_context(process(c, "controller-manager", *CONTROLLERS))
        await c.client.create(PRIORITYCLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        programs = {"server": c.pid, "scheduler": scheduler, "controller-manager": manager}
        pods = _Pods(course)
        begun, before = time.monotonic(), 0
        work = (
            pods.follow(c),
            _disturb(c, course, pods, seed),
            _sample(programs, f"http://{address}/debug/pprof/goroutine", course),
        )
        async with _together(*work, _submit(c, course, pods, wanted, seed)) as tasks:
            while not tasks[-1].done():
                await asyncio.sleep(10.0)
                for task in tasks:
                    if task.done() and not task.cancelled():
                        task.result()
                click.echo(
                    f"{time.monotonic() - begun:6.0f} s: {course.bound} pods bound, {len(pods.alive)} exist", err=True
                )
                if course.bound == before and time.monotonic() - begun > 60:
                    raise click.ClickException(f"no pod was bound for 10 s; logs are in {c.folder}")
                before = course.bound
    return course


def charts(course: Course) -> str:
    """The course as one SVG."""
    names = sorted({name for s in course.samples for name in s.memory})
    pods = [s.pods for s in course.samples]
    panels = []
    for what, unit in (("memory", "MiB"), ("descriptors", ""), ("tasks", "")):
        known = [name for name in names if any(name in getattr(s, what) for s in course.samples)]
        lines = [
            Series(
                name,
                [
                    (p, getattr(s, what)[name])
                    for p, s in zip(pods, course.samples, strict=True)
                    if name in getattr(s, what)
                ],
            )
            for name in known
        ]
        panels.append((f"{what} {unit}".strip(), lines))
    step = max(1, len(course.waits) // 300)
    parts = [sorted(w for _, w in course.waits[i : i + step]) for i in range(0, len(course.waits), step)]
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        points = [(i * step, part[int(share * (len(part) - 1))]) for i, part in enumerate(parts)]
        if name == "p50":
            panels.append(("creation to binding, s", [Series(name, points)]))
        else:
            panels[-1][1].append(Series(name, points))
    return svg(panels, "pods bound")


@click.command()
@click.option("--pods", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Pods to bind.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--chart", type=click.Path(path_type=Path, dir_okay=False), default="soak.svg", show_default=True)
def soak(pods: int, seed: int, chart: Path) -> None:
    """Pods through the sandbox, and whether memory, descriptors, tasks and latency stay flat."""
    begun = time.monotonic()
    course = asyncio.run(run(pods, seed))
    rows = tenths(course, pods)
    names = list(dict.fromkeys(name for row in rows for name in row))
    width = max(map(len, names))
    click.echo(f"{'':{width}}" + "".join(f"{i + 1:>9}" for i in range(PARTS)))
    for name in names:
        click.echo(f"{name:{width}}" + "".join(f"{row[name]:9.2f}" if name in row else f"{'':9}" for row in rows))
    seconds = time.monotonic() - begun
    click.echo(
        f"{course.bound} pods bound in {seconds:.0f} s ({course.bound / seconds:.0f}/s), {course.failed} failed, "
        f"{course.preempted} preempted, {course.evicted} evicted, {course.nodes_replaced} nodes replaced"
    )
    chart.write_text(charts(course))
    click.echo(f"the chart is {chart}")
    wrong = faults(rows, pods)
    if wrong:
        raise click.ClickException("not flat: " + "; ".join(wrong))
