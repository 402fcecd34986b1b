"""Requests, bytes and processor time of a pod, by program, verb and resource: what a busy API server has to do.

Requests and bytes are those of the sandbox's audit log, by user agent. The bytes are those of response bodies, so that
those of watches are what all of a program's watches have received since they were opened, divided by the pods. Requests
for watches and the Lease are not counted: they do not grow with pods.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import click
import orjson

from benchmarks.cluster import Cluster, Manifest, at_rest, cluster, cpu_seconds, descendants, pod, rate, until_running
from benchmarks.control_plane import CONTROLLERS, job, process
from benchmarks.profiles import CONFIG
from volcano_py.api.kinds import JOB, NATIVE_PODGROUP_BETA, NODE, POD, PODGROUP
from volcano_py.api.resource_types import namespaced_kind
from volcano_py.sandbox.apiserver.http.audit import RESPONSE_BYTES

PROGRAMS = ("scheduler", "dispatcher", "controller-manager", "vc-controller-manager")
"""By user agent; the controllers write under the second of their names, which other controllers know."""
BATCHJOB = namespaced_kind("batch/v1", "jobs", "Job")
LEFT_OUT = {("get", "leases"), ("update", "leases")}
Key = tuple[str, str, str]
Life = Callable[[Cluster, int, int], Awaitable[object]]
"""Creates what has the given number, each with that many pods."""


def bare(i: int) -> Manifest:
    """A pod without a PodGroup."""
    made = pod(i)
    made["spec"]["schedulerName"] = "volcano"
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return made


async def alone(c: Cluster, number: int, size: int) -> None:
    for i in range(size):
        await c.client.create(POD, bare(number * size + i))


async def of_profile(c: Cluster, number: int, size: int) -> None:
    """Pods of the profile of `benchmarks profiles`."""
    for i in range(size):
        made = bare(number * size + i)
        made["spec"]["schedulerName"] = "pods"
        await c.client.create(POD, made)


async def gang(c: Cluster, number: int, size: int) -> None:
    """A PodGroup and its pods, as a user creates them."""
    name = f"gang-{number:04d}"
    spec = {"minMember": size, "queue": "default", "minResources": {"cpu": f"{100 * size}m"}}
    await c.client.create(PODGROUP, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    for i in range(size):
        made = bare(number * size + i)
        made["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
        await c.client.create(POD, made)


async def native(c: Cluster, number: int, size: int) -> None:
    """The same with a PodGroup of Kubernetes."""
    name = f"gang-{number:04d}"
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
    await c.client.create(NATIVE_PODGROUP_BETA, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    for i in range(size):
        made = bare(number * size + i)
        made["spec"]["schedulingGroup"] = {"podGroupName": name}
        await c.client.create(POD, made)


async def batch_job(c: Cluster, number: int, size: int) -> None:
    """A Job of Kubernetes, whose pods are created by its own controller."""
    template = {key: value for key, value in bare(0).items() if key == "spec"}
    spec = {"parallelism": size, "completions": size, "template": template}
    await c.client.create(BATCHJOB, {"metadata": {"name": f"batch-{number:04d}", "namespace": "default"}, "spec": spec})


async def volcano_job(c: Cluster, number: int, size: int) -> None:
    await c.client.create(JOB, job(f"job-{number:04d}", size, "infinity"))


class Kind(NamedTuple):
    """What is created."""

    text: str
    life: Life
    single: bool = False
    """Whether it is one pod, whatever the size."""
    sandbox: tuple[str, ...] = ()
    scheduler: tuple[str, ...] = ()
    """Further flags of the sandbox and of the scheduler; FOLDER is the folder of the cluster."""


KINDS = {
    "bare": Kind("bare pods", alone, single=True),
    "podgroup": Kind("PodGroups of {}", gang),
    "job": Kind("Jobs of {}", volcano_job),
    "batch": Kind("batch Jobs of {}", batch_job),
    "native": Kind(
        "native gangs of {}", native, sandbox=("--kubernetes-version", "1.37", "--feature-gates", "AllAlpha=true")
    ),
    "profile": Kind("pods of a profile", of_profile, single=True, scheduler=("--config", "FOLDER/profiles.yaml")),
}


class Counted(NamedTuple):
    """By program, verb and resource/subresource."""

    requests: Counter[Key]
    received: Counter[Key]


def counted(lines: list[bytes], after: int) -> Counted:
    """The requests of our programs in the lines of an audit log, from a line on, with what they have received; and the
    bytes of all watches and of the lists before."""
    found = Counted(Counter(), Counter())
    for at, line in enumerate(lines):
        event = orjson.loads(line)
        about = event.get("objectRef", {})
        what = about.get("resource", "") + ("/" + about["subresource"] if about.get("subresource") else "")
        program, verb = event["userAgent"].partition("/")[2], event["verb"]
        if program not in PROGRAMS or (verb, what) in LEFT_OUT:
            continue
        if at >= after and verb != "watch":
            found.requests[program, verb, what] += 1
        if at >= after or verb == "watch":
            found.received[program, verb, what] += int(event.get("annotations", {}).get(RESPONSE_BYTES, 0))
    return found


async def create(c: Cluster, kind: Kind, pods: int, size: int, per_second: float) -> None:
    """All at once, or with this number of pods a second."""
    size = 1 if kind.single else size
    if not per_second:
        await rate(pods // size, lambda i: kind.life(c, i, size))
        return
    begun = time.perf_counter()
    for i in range(pods // size):
        await kind.life(c, i, size)
        await asyncio.sleep(max(0.0, begun + (i + 1) * size / per_second - time.perf_counter()))


class Idle(NamedTuple):
    """Seconds in which nothing is created, with this number of running pods, of which some change per second."""

    seconds: float
    running: int
    updates: float


async def run_pods(c: Cluster, pods: int) -> None:
    """Pods that run before the programs start; half of them are of our scheduler."""

    names = [node["metadata"]["name"] for node in await c.client.list(NODE)]

    async def one(i: int) -> None:
        made = bare(i) if i % 2 else pod(i)
        made["spec"]["nodeName"] = names[i % len(names)]
        await c.client.create(POD, made)

    await rate(pods, one)
    await until_running(c.client, pods)


async def update(c: Cluster, idle: Idle) -> None:
    """Patches of the statuses of running pods, whose containers have restarted, as kubelets send them."""
    begun = time.perf_counter()
    for i in range(int(idle.seconds * idle.updates)):
        container = {"name": "main", "image": "busybox", "imageID": "", "ready": bool(i % 2), "restartCount": i}
        ready = {"type": "Ready", "status": str(bool(i % 2)), "lastTransitionTime": time.strftime("%FT%TZ")}
        body = {"status": {"containerStatuses": [container], "conditions": [ready]}}
        name = f"pod-{i // 2 % idle.running:05d}"
        await c.client.patch(POD, name, body, "default", "strategic", subresource="status")
        await asyncio.sleep(max(0.0, begun + (i + 1) / idle.updates - time.perf_counter()))
    await asyncio.sleep(max(0.0, begun + idle.seconds - time.perf_counter()))


async def measure(kind: Kind, pods: int, size: int, nodes: int, per_second: float, idle: Idle) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "audit.log"  # complete when the sandbox has ended
        async with cluster(nodes, "none", "--audit-log", str(log), *kind.sandbox) as c:
            (c.folder / "profiles.yaml").write_text(CONFIG)
            if idle.running:
                await run_pods(c, idle.running)
            flags = (flag.replace("FOLDER", str(c.folder)) for flag in kind.scheduler)
            async with (
                process(c, "scheduler", "--leader-elect=false", *flags) as scheduler,
                process(c, "controller-manager", *CONTROLLERS) as controllers,
            ):
                await at_rest(scheduler, controllers)
                dispatcher = next(descendants(scheduler))
                pids = {"scheduler": scheduler, "dispatcher": dispatcher, "controller-manager": controllers}
                used = {name: cpu_seconds(pid) for name, pid in pids.items()}
                before = log.read_bytes().count(b"\n")
                if idle.seconds:
                    await update(c, idle)
                else:
                    await create(c, kind, pods, size, per_second)
                    await until_running(c.client, pods)
                    await asyncio.sleep(3)
                spent = {name: cpu_seconds(pid) - used[name] for name, pid in pids.items()}
        found = counted(log.read_bytes().splitlines(), before)
    if idle.seconds:
        _print_idle(found, spent, nodes, idle)
    else:
        _print(kind.text.format(size), found, spent, pods)


def _print(text: str, found: Counted, spent: dict[str, float], pods: int) -> None:
    processor = ", ".join(f"{name} {seconds / pods * 1000:.2f}" for name, seconds in spent.items())
    total = sum(spent.values()) / pods * 1000
    print(
        f"{text}: {found.requests.total() / pods:.2f} requests and {found.received.total() / pods:,.0f} bytes a pod; "
        f"CPU {total:.2f} ms a pod ({processor})"
    )
    for key in sorted(found.received, key=lambda key: (-found.requests[key], -found.received[key])):
        if found.requests[key] >= pods / 100 or found.received[key] >= 10 * pods:
            program, verb, what = key
            print(
                f"  {program:22}{verb:8}{what:24}{found.requests[key] / pods:7.3f}{found.received[key] / pods:10,.0f}"
            )


def _print_idle(found: Counted, spent: dict[str, float], nodes: int, idle: Idle) -> None:
    cores = ", ".join(f"{name} {used / idle.seconds:.4f}" for name, used in spent.items())
    what = f"{nodes} nodes, {idle.running} running pods, {idle.updates:g} of them updated per second"
    print(f"idle, {what}, {idle.seconds:.0f} s: share of a core: {cores}")
    for (program, verb, what), count in found.requests.most_common():
        print(f"  {program:22}{verb:8}{what:24}{count:6} requests")


@click.command()
@click.option("--pods", default=1000, show_default=True)
@click.option("--size", default=20, show_default=True, help="Pods of a Job or gang.")
@click.option("--nodes", default=0, help="By default one for 50 pods.")
@click.option("--rate", "per_second", default=0.0, help="Pods that are created per second; by default all at once.")
@click.option("--idle", default=0.0, help="Seconds in which nothing is created.")
@click.option("--running", default=0, help="With --idle: pods that run.")
@click.option("--updates", default=0.0, help="With --running: statuses of these pods that change per second.")
@click.option("--only", multiple=True, type=click.Choice(list(KINDS)), help="What is created; by default each of them.")
def requests(
    pods: int,
    size: int,
    nodes: int,
    per_second: float,
    idle: float,
    running: int,
    updates: float,
    only: tuple[str, ...],
) -> None:
    """Requests, bytes and processor time a pod, by program, verb and resource."""
    if (running and not idle) or (updates and not running):
        raise click.UsageError("--running goes with --idle, and --updates with --running")
    rest = Idle(idle, running, updates)
    for name in only or (["bare"] if idle else KINDS):
        asyncio.run(measure(KINDS[name], pods, size, nodes or max(10, pods // 50), per_second, rest))
