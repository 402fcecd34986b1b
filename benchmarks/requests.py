"""Requests and processor time of a pod, by program, verb and resource: what a busy API server has to do for each.

The requests are counted in the sandbox's audit log by user agent. Watches and the Lease are left out: they do not grow
with pods.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import click
import orjson

from benchmarks.cluster import Cluster, Manifest, cluster, cpu_seconds, descendants, pod, rate, until_running
from benchmarks.control_plane import CONTROLLERS, job, process
from volcano_py.api.kinds import JOB, POD, PODGROUP

PROGRAMS = ("scheduler", "dispatcher", "vc-controller-manager")
LEFT_OUT = {("get", "leases"), ("update", "leases")}
Key = tuple[str, str, str]


def bare(i: int) -> Manifest:
    """A pod without a PodGroup."""
    made = pod(i)
    made["spec"]["schedulerName"] = "volcano"
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return made


async def gang(c: Cluster, number: int, size: int) -> None:
    """A PodGroup and its pods, as a user creates them."""
    name = f"gang-{number:04d}"
    spec = {"minMember": size, "queue": "default", "minResources": {"cpu": f"{100 * size}m"}}
    await c.client.create(PODGROUP, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    for i in range(size):
        made = bare(number * size + i)
        made["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
        await c.client.create(POD, made)


def counted(c: Cluster, after: int) -> Counter[Key]:
    """(program, verb, resource/subresource) of our programs' requests in the audit log, from a line on."""
    found: Counter[Key] = Counter()
    for line in (c.folder / "audit.log").read_bytes().splitlines()[after:]:
        event = orjson.loads(line)
        about = event.get("objectRef", {})
        what = about.get("resource", "") + ("/" + about["subresource"] if about.get("subresource") else "")
        program = event["userAgent"].partition("/")[2]
        if program in PROGRAMS and event["verb"] != "watch" and (event["verb"], what) not in LEFT_OUT:
            found[program, event["verb"], what] += 1
    return found


async def measure(kind: str, pods: int, size: int) -> None:
    async with (
        cluster(max(10, pods // 50), "none", "--audit-log", "FOLDER/audit.log") as c,
        process(c, "scheduler", "--leader-elect=false") as scheduler,
        process(c, "controller-manager", *CONTROLLERS) as controllers,
    ):
        await asyncio.sleep(8)
        dispatcher = next(descendants(scheduler))
        pids = {"scheduler": scheduler, "dispatcher": dispatcher, "controller-manager": controllers}
        used = {name: cpu_seconds(pid) for name, pid in pids.items()}
        before = (c.folder / "audit.log").read_bytes().count(b"\n")
        if kind == "bare pods":
            await rate(pods, lambda i: c.client.create(POD, bare(i)))
        elif kind.startswith("PodGroups"):
            await rate(pods // size, lambda i: gang(c, i, size))
        else:
            await rate(pods // size, lambda i: c.client.create(JOB, job(f"job-{i:04d}", size, "infinity")))
        await until_running(c.client, pods)
        await asyncio.sleep(3)
        spent = {name: (cpu_seconds(pid) - used[name]) / pods * 1000 for name, pid in pids.items()}
        found = counted(c, before)
    processor = ", ".join(f"{name} {ms:.1f} ms" for name, ms in spent.items())
    print(f"{kind}: {sum(found.values()) / pods:.2f} requests a pod; processor time a pod: {processor}")
    for (program, verb, what), count in found.most_common():
        if count < pods / 100:
            break
        print(f"  {program:20} {verb:8} {what:24} {count / pods:6.3f} a pod")


@click.command()
@click.option("--pods", default=1000, show_default=True)
@click.option("--size", default=20, show_default=True, help="Pods of a Job.")
def requests(pods: int, size: int) -> None:
    """Requests and processor time a pod, for bare pods, pods of PodGroups and Jobs."""
    for kind in ("bare pods", f"PodGroups of {size}", f"Jobs of {size}"):
        asyncio.run(measure(kind, pods, size))
