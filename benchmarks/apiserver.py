"""Pods on kube-apiserver and etcd, beside kube-scheduler: when they are bound, and the processor time of all parts.

    KUBEBUILDER_ASSETS=<folder with kube-apiserver and etcd> python -m benchmarks apiserver [--case NAME ...]

If the folder has kube-scheduler too, it runs the cases without Jobs. Nodes are objects only and no kubelet runs: the
figures end with the bind. Every measurement has a control plane of its own, and times are those at which a watch of
this process shows the pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from benchmarks.cluster import Cluster, Manifest, at_rest, cpu_seconds, descendants, rate, resident
from benchmarks.control_plane import CONTROLLERS, job, process
from benchmarks.requests import bare
from benchmarks.restart import group, member
from tests.acceptance.envtest import Missing, assets, control_plane, install
from volcano_py.api.kinds import JOB, NODE, POD, PODGROUP, QUEUE
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer

CREATORS = 8
SETTLE = 10.0
"""Seconds for the programs to start, and for the last statuses to be written."""
LONGEST = 300.0
AMOUNTS = {"cpu": "32", "memory": "256Gi", "pods": "110"}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
PARTS = ("etcd", "kube-apiserver")
OURS, THEIRS = "volcano-py", "kube-scheduler"
SCHEDULER_NAMES = {OURS: "volcano", THEIRS: "default-scheduler"}
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}


class Case(NamedTuple):
    """What is created. `pace`: pods a second, 0: as fast as they can be created. `jobs` share the pods.

    `gang`: pods of a PodGroup (for kube-scheduler: without one) that exist before the scheduler starts. `running`: pods
    on nodes that exist before it starts, one in a PodGroup of ten.
    """

    pods: int
    pace: int = 0
    jobs: int = 0
    gang: int = 0
    running: int = 0

    @property
    def from_start(self) -> bool:
        """Whether times count from the start of the scheduler's process."""
        return bool(self.gang or self.running)


CASES = {
    "bare": Case(2000),
    "paced": Case(500, pace=20),
    "jobs": Case(2000, jobs=100),
    "large-job": Case(2000, jobs=1),
    "gangs": Case(2000, gang=40),
    "full": Case(1, running=10_000),
}


class Watched:
    """When pods were created here (or first shown, if a controller creates them), and when shown on a node."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    def see(self, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        self.created.setdefault(name, time.monotonic())
        if pod["spec"].get("nodeName"):
            self.bound.setdefault(name, time.monotonic())

    def forget(self) -> None:
        """Start again with the pods that are created from now on."""
        self.created.clear()
        self.bound.clear()

    async def until_bound(self, pods: int) -> None:
        deadline = time.monotonic() + LONGEST
        while len(self.bound) < pods:
            if time.monotonic() > deadline:
                raise click.ClickException(f"{pods - len(self.bound)} pods are not bound")
            await asyncio.sleep(0.05)

    def latencies(self) -> list[float]:
        """Milliseconds from the create to the bind, in ascending order."""
        return sorted((bound - self.created[name]) * 1000 for name, bound in self.bound.items())


# ---- what runs


@asynccontextmanager
async def plane(nodes: int, audit: bool) -> AsyncIterator[tuple[Cluster, Watched]]:
    """kube-apiserver and etcd with our CRDs and this many ready Nodes."""
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as name:
        folder = Path(name)
        (folder / "policy.json").write_bytes(orjson.dumps(AUDIT | {"rules": [{"level": "Metadata"}]}))
        log = (f"--audit-policy-file={folder / 'policy.json'}", f"--audit-log-path={folder / 'audit.log'}")
        async with (
            control_plane(assets(dict(os.environ)), folder, *(log if audit else ())) as started,
            Client.from_kubeconfig(started.kubeconfig, lean=True, connections=64, user_agent="load") as client,
        ):
            await install(client)
            await rate(nodes, lambda i: _node(client, f"node-{i:05d}"))
            watched = Watched()
            watch: Informer[Any] = Informer(client, POD)
            watch.on(add=watched.see, update=lambda _, pod: watched.see(pod))
            watching = asyncio.create_task(watch.run())
            await watch.synced.wait()
            yield Cluster(os.getpid(), client, folder), watched
            watching.cancel()


async def _node(client: Client, name: str) -> None:
    # kube-apiserver taints a Node as not ready when it is created, and leaves its status out.
    await client.create(NODE, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    await client.patch(NODE, name, {"spec": {"taints": None}})
    status = {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": [READY]}
    await client.patch(NODE, name, {"status": status}, subresource="status")


@asynccontextmanager
async def programs(which: str, case: Case, c: Cluster) -> AsyncIterator[dict[str, int]]:
    """The scheduler, and our controllers unless its start is measured; gives their process ids by name."""
    async with contextlib.AsyncExitStack() as started:
        if which == THEIRS:
            yield {"scheduler": await started.enter_async_context(_kube_scheduler(c))}
            return
        pids = {"scheduler": await started.enter_async_context(process(c, "scheduler", "--leader-elect=false"))}
        if not case.from_start:
            controllers = process(c, "controller-manager", *CONTROLLERS)
            pids["controllers"] = await started.enter_async_context(controllers)
        while not (below := list(descendants(pids["scheduler"]))):
            await asyncio.sleep(0.02)
        yield pids | {"dispatcher": below[0]}


@asynccontextmanager
async def _kube_scheduler(c: Cluster) -> AsyncIterator[int]:
    """Without its limit of 50 requests a second."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(c.kubeconfig), "qps": 5000, "burst": 10_000},
    }
    file = c.folder / "kube-scheduler.json"
    file.write_bytes(orjson.dumps(config))
    with (c.folder / "kube-scheduler.log").open("ab") as log:
        started = await asyncio.create_subprocess_exec(
            *(str(assets(dict(os.environ)) / THEIRS), f"--config={file}", "--secure-port=0"), stdout=log, stderr=log
        )
    try:
        yield started.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.send_signal(signal.SIGTERM)
        await started.wait()


def _parts(pid: int) -> Iterator[tuple[str, int]]:
    for child in descendants(pid):
        name = Path(f"/proc/{child}/comm").read_text().strip()
        if name in PARTS:
            yield name, child


# ---- what is created


def _pod(i: int, which: str) -> Manifest:
    made = bare(i)
    made["spec"]["schedulerName"] = SCHEDULER_NAMES[which]
    return made


async def create(case: Case, which: str, c: Cluster, watched: Watched) -> None:
    """The Jobs of a case, or its single pods."""
    if case.jobs:
        await rate(case.jobs, lambda i: c.client.create(JOB, job(f"job-{i:03d}", case.pods // case.jobs, "infinity")))
        return
    begun = time.monotonic()
    numbers = iter(range(case.pods))

    async def lane() -> None:
        for i in numbers:
            if case.pace:
                await asyncio.sleep(max(0.0, begun + i / case.pace - time.monotonic()))
            made = _pod(i, which)
            watched.created[made["metadata"]["name"]] = time.monotonic()
            await c.client.create(POD, made)

    await asyncio.gather(*(lane() for _ in range(1 if case.pace else CREATORS)))


async def prepare(case: Case, which: str, c: Cluster) -> None:
    """What exists before the scheduler starts; pods that wait have the names of `bare`."""
    await c.client.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    await c.client.patch(QUEUE, "default", {"status": {"state": "Open"}}, subresource="status")
    if case.running:
        names = [node["metadata"]["name"] for node in await c.client.list(NODE)]
        await rate(case.running // 10, lambda i: c.client.create(PODGROUP, group(f"old-{i}")))
        first = case.pods
        await rate(
            case.running,
            lambda i: c.client.create(POD, member(first + i, f"old-{i // 10}", names[i % len(names)])),
        )
    if not case.gang:
        await rate(case.pods, lambda i: c.client.create(POD, _pod(i, which)))
        return

    def waiting(i: int) -> Manifest:
        made = group(f"gang-{i}")
        made["spec"]["minMember"] = case.gang
        return made

    async def one(i: int) -> None:
        made = _pod(i, which)
        if which == OURS:
            made["metadata"]["annotations"] = member(i, f"gang-{i // case.gang}", None)["metadata"]["annotations"]
        await c.client.create(POD, made)

    await rate(case.pods // case.gang, lambda i: c.client.create(PODGROUP, waiting(i)))
    await rate(case.pods, one)


# ---- what is measured


class Result(NamedTuple):
    """Times in seconds since the first create, or since the start of the process; CPU seconds by program."""

    created: float
    first: float
    last: float
    latencies: list[float]
    spent: dict[str, float]
    memory: dict[str, float]
    requests: Counter[tuple[str, str, str]]


async def measure(case: Case, which: str, nodes: int, audit: bool) -> Result:
    async with plane(nodes, audit) as (c, watched):
        if case.from_start:
            await prepare(case, which, c)
            await asyncio.sleep(1)
            watched.forget()
        log = c.folder / "audit.log"
        before = dict.fromkeys(PARTS, 0.0) | {name: cpu_seconds(pid) for name, pid in _parts(c.pid)}
        lines = log.read_bytes().count(b"\n") if audit else 0
        begun = time.monotonic()
        async with programs(which, case, c) as pids:
            if not case.from_start:
                await asyncio.sleep(SETTLE)
                await at_rest(*pids.values())
            pids |= dict(_parts(c.pid))
            if not case.from_start:
                before = {name: cpu_seconds(pid) for name, pid in pids.items()}
                lines = log.read_bytes().count(b"\n") if audit else 0
                begun = time.monotonic()
                await create(case, which, c, watched)
            created = time.monotonic()
            await watched.until_bound(case.pods)
            if not case.from_start:
                await asyncio.sleep(1)  # Events and statuses
            spent = {name: cpu_seconds(pid) - before.get(name, 0.0) for name, pid in pids.items()}
            memory = {name: resident(pid) for name, pid in pids.items()}
        found = agents(log.read_bytes().splitlines()[lines:]) if audit else Counter()
        times = sorted(watched.bound.values())
    return Result(created - begun, times[0] - begun, times[-1] - begun, watched.latencies(), spent, memory, found)


def agents(lines: list[bytes]) -> Counter[tuple[str, str, str]]:
    """Requests by (user agent, verb, resource), without the Leases."""
    found: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        event = orjson.loads(line)
        about = event.get("objectRef", {})
        what = about.get("resource", "") + ("/" + about["subresource"] if about.get("subresource") else "")
        if what != "leases":
            found[event.get("userAgent", "").partition(" ")[0], event["verb"], what] += 1
    return found


def show(name: str, case: Case, which: str, result: Result) -> None:
    print(f"{name}, {which}: {case.pods} pods")
    if case.from_start:
        print(f"  first bind after {result.first:.2f} s, last after {result.last:.2f} s from the start of the process")
    else:
        speed = case.pods / result.last
        print(
            f"  created in {result.created:.1f} s; bound from {result.first:.2f} to {result.last:.1f} s, {speed:.0f}/s"
        )
        p50, p99 = (result.latencies[len(result.latencies) * percent // 100] for percent in (50, 99))
        print(f"  {'shown' if case.jobs else 'create'} to bind: P50 {p50:.0f} ms, P99 {p99:.0f} ms")
    row = ", ".join(f"{part} {seconds:.2f}" for part, seconds in result.spent.items())
    print(f"  CPU seconds: {row}, sum {sum(result.spent.values()):.1f}")
    print("  MiB: " + ", ".join(f"{part} {amount:.0f}" for part, amount in result.memory.items()), flush=True)
    for (agent, verb, what), count in result.requests.most_common():
        if count >= case.pods / 100:
            print(f"    {agent:36} {verb:8}{what:24}{count / case.pods:8.3f} a pod")


@click.command()
@click.option("--case", "names", multiple=True, type=click.Choice(list(CASES)), help="Default: all.")
@click.option(
    "--program", "which", multiple=True, type=click.Choice([OURS, THEIRS]), help="Default: those that are there."
)
@click.option("--nodes", default=1000, show_default=True)
@click.option("--requests", is_flag=True, help="Count requests by user agent; the audit log costs CPU time.")
def apiserver(names: tuple[str, ...], which: tuple[str, ...], nodes: int, requests: bool) -> None:
    """Time to bind on kube-apiserver and etcd from $KUBEBUILDER_ASSETS."""
    try:
        has = os.access(assets(dict(os.environ)) / THEIRS, os.X_OK)
        for name in names or CASES:
            for program in which or ((OURS, THEIRS) if has else (OURS,)):
                case = CASES[name]
                if program == OURS or not case.jobs:
                    show(name, case, program, asyncio.run(measure(case, program, nodes, requests)))
    except Missing as error:
        raise click.ClickException(str(error)) from None
