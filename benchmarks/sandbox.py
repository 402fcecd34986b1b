"""What the sandbox does: pods made and bound a second over TLS, memory, time to start.

The server runs in a process of its own and the client in this one, as on a real machine; the hollow kubelets are at
work in the server, so a binding costs it the start of a pod, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import click
import orjson

from volcano_py.api.kinds import JOB, NODE, POD
from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError

SHAPE = "cpu=32,memory=256Gi"
LANES = 64
"""Requests under way at a time."""
START_SECONDS = 120.0
GANG = 100

Manifest = dict[str, Any]
TARGETS = {
    "creations_per_s": (">=", 1200.0),
    "bindings_per_s": (">=", 2000.0),
    "altogether_mib": ("<", 1536.0),
}


# ---- a sandbox in a process of its own


class Cluster:
    """`pid` is the server's; its components are its children."""

    def __init__(self, pid: int, client: Client) -> None:
        self.pid = pid
        self.client = client

    def memory(self) -> float:
        """MiB of the server alone."""
        return resident(self.pid)

    def altogether(self) -> float:
        """MiB of the server and all that it has started."""
        return sum(resident(pid) for pid in [self.pid, *descendants(self.pid)])


@contextlib.asynccontextmanager
async def cluster(nodes: int, components: str) -> AsyncIterator[Cluster]:
    """A sandbox that answers, with all of its nodes Ready."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        up = [sys.executable, "-m", "volcano_py.cli.main", "sandbox", "up", "--kubeconfig", str(kubeconfig)]
        server = await asyncio.create_subprocess_exec(
            *up,
            *("--nodes", str(nodes), "--node-shape", SHAPE, "--components", components),
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            async with await _connected(kubeconfig, server, nodes) as client:
                yield Cluster(server.pid, client)
        finally:
            with contextlib.suppress(ProcessLookupError):
                server.send_signal(signal.SIGTERM)
            await server.wait()


async def _connected(kubeconfig: Path, server: asyncio.subprocess.Process, nodes: int) -> Client:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.returncode is not None:
            raise click.ClickException("the sandbox did not start; its error is above")
        with contextlib.suppress(KubeError):
            client = Client.from_kubeconfig(kubeconfig, lean=True, connections=LANES)
            found = await client.list(NODE)
            if len(found) == nodes and all(_is_ready(node) for node in found):
                return client
            await client.close()
        await asyncio.sleep(0.02)
    raise click.ClickException(f"the sandbox is not ready after {START_SECONDS:.0f} s")


def _is_ready(node: Manifest) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def resident(pid: int) -> float:
    """MiB of memory of one process; pages it shares with others count in part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise click.ClickException("the kernel does not tell a process's memory (/proc/PID/smaps_rollup)")


def descendants(pid: int) -> Iterator[int]:
    """All processes below one."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            yield child
            yield from descendants(child)


# ---- what is measured


def pod(i: int) -> Manifest:
    """A pod as users write it; its scheduler is not running."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{i:05d}", "namespace": "default", "labels": {"app": f"bench-{i % 100}"}},
        "spec": {
            "schedulerName": "nobody",
            "containers": [
                {
                    "name": "main",
                    "image": "busybox",
                    "command": ["sleep", "infinity"],
                    "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                }
            ],
            "restartPolicy": "Never",
        },
    }


def gang(i: int) -> Manifest:
    template = {"spec": {k: v for k, v in pod(0)["spec"].items() if k != "schedulerName"}}
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": f"gang-{i:04d}", "namespace": "default"},
        "spec": {
            "minAvailable": GANG,
            "schedulerName": "volcano",
            "tasks": [{"name": "main", "replicas": GANG, "template": template}],
        },
    }


async def rate(count: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Calls a second, `LANES` at a time."""
    numbers = iter(range(count))

    async def lane() -> None:
        for i in numbers:
            await call(i)

    begun = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(LANES)))
    return count / (time.perf_counter() - begun)


async def throughput(nodes: int, pods: int) -> dict[str, float]:
    """Creations and bindings a second, and the server's memory with all of it."""
    async with cluster(nodes, "none") as c:
        names = [node["metadata"]["name"] for node in await c.client.list(NODE)]
        empty = c.memory()
        created = await rate(pods, lambda i: c.client.create(POD, pod(i)))
        await asyncio.sleep(1)
        pending = c.memory()

        def bind(i: int) -> Awaitable[object]:
            target = {"apiVersion": "v1", "kind": "Node", "name": names[i % nodes]}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"pod-{i:05d}"}, "target": target}
            return c.client.create_subresource(POD, f"pod-{i:05d}", "binding", body, "default")

        bound = await rate(pods, bind)
        await _until_running(c.client, pods)
        return {
            "creations_per_s": created,
            "bindings_per_s": bound,
            "server_empty_mib": empty,
            "server_pending_mib": pending,
            "server_running_mib": c.memory(),
        }


async def whole(nodes: int, pods: int) -> dict[str, float]:
    """Gangs through controllers and scheduler: until all run, and everybody's memory then."""
    async with cluster(nodes, "scheduler,controller-manager") as c:
        begun = time.perf_counter()
        for i in range(pods // GANG):
            await c.client.create(JOB, gang(i))
        await _until_running(c.client, pods // GANG * GANG)
        took = time.perf_counter() - begun
        await asyncio.sleep(2)
        return {"jobs_to_running_s": took, "altogether_mib": c.altogether(), "server_of_it_mib": c.memory()}


async def _until_running(client: Client, pods: int) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        answer = orjson.loads(
            await client.raw("GET", POD.path(None), params={"fieldSelector": "status.phase=Running", "limit": 1})
        )
        left = (answer.get("metadata") or {}).get("remainingItemCount")
        running = len(answer.get("items") or ()) + (left or 0)
        if left is None and running:
            running = len(await client.list(POD, None, field_selector="status.phase=Running"))
        if running >= pods:
            return
        await asyncio.sleep(1)
    raise click.ClickException(f"only {running} of {pods} pods run after 600 s")


async def start(nodes: int) -> dict[str, float]:
    """From the command to an API server with all nodes Ready; and on to the first job that runs."""
    begun = time.perf_counter()
    async with cluster(nodes, "scheduler,controller-manager") as c:
        ready = time.perf_counter() - begun
        one = gang(0)
        one["spec"]["minAvailable"] = one["spec"]["tasks"][0]["replicas"] = 1
        await c.client.create(JOB, one)
        while not await c.client.list(POD, "default", field_selector="status.phase=Running"):
            await asyncio.sleep(0.02)
        return {"start_ready_s": ready, "start_first_job_s": time.perf_counter() - begun}


# ---- the table


ROWS = (
    ("start_ready_s", "start: nodes Ready", "s"),
    ("start_first_job_s", "start: first job Running", "s"),
    ("creations_per_s", "pod creations", "/s"),
    ("bindings_per_s", "bindings", "/s"),
    ("server_empty_mib", "server with {nodes} nodes", "MiB"),
    ("server_pending_mib", "server with {nodes} nodes, {pods} pods pending", "MiB"),
    ("server_running_mib", "server with {nodes} nodes, {pods} pods running", "MiB"),
    ("jobs_to_running_s", "{gangs} gangs of {gang}: submitted to Running", "s"),
    ("server_of_it_mib", "server with these jobs", "MiB"),
    ("altogether_mib", "server, scheduler, dispatcher and controllers", "MiB"),
)


@click.command()
@click.option("--nodes", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--pods", type=click.IntRange(GANG), default=10_000, show_default=True)
@click.option("--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to this file.")
def sandbox(nodes: int, pods: int, out: Path | None) -> None:
    """Measure the sandbox: rates over TLS, memory, time to start (about a minute and a half)."""

    async def measure() -> dict[str, float]:
        return {**await start(20), **await throughput(nodes, pods), **await whole(nodes, pods)}

    if not Path("/proc/self/smaps_rollup").exists():
        raise click.ClickException("this benchmark reads /proc/PID/smaps_rollup, which only Linux has")
    figures = asyncio.run(measure())
    words = {"nodes": nodes, "pods": pods, "gangs": pods // GANG, "gang": GANG}
    labels = [(key, text.format(**words), unit) for key, text, unit in ROWS]
    width = max(len(text) for _, text, _ in labels)
    print(f"{'figure':{width}}  {'value':>10}  {'unit':4}  target")
    missed = []
    for key, text, unit in labels:
        sign, target = TARGETS.get(key, ("", 0.0))
        met = not sign or (figures[key] >= target if sign == ">=" else figures[key] < target)
        note = f"{sign} {target:g}{'' if met else '  MISSED'}" if sign else ""
        missed += [] if met else [text]
        print(f"{text:{width}}  {figures[key]:10.1f}  {unit:4}  {note}".rstrip())
    if out is not None:
        document = {**words, "cpus": os.cpu_count(), **{key: round(value, 2) for key, value in figures.items()}}
        out.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if missed:
        sys.exit(f"short of the target: {', '.join(missed)}")
