"""A minute on the sandbox: a gang as large as the cluster is submitted while small jobs arrive, with nodes held for it
and without. Prints a frame every three seconds; docs/decisions-over-time.md contains them.

    python -m benchmarks.landing            both, one after the other
    python -m benchmarks.landing --with     only with the plugin reservation

`tests/simulate/test_landing.py` runs the same jobs in simulated time.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from volcano_py.api.kinds import JOB, POD, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode

Manifest = dict[str, Any]
SECONDS, EVERY = 60, 3
NODES, CPUS = 4, 4
GANG = "gang"
WITHOUT = """actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
WITH = WITHOUT.replace("enqueue, ", "enqueue, reserve, ").replace(
    "{name: nodeorder}", "{name: nodeorder}, {name: reservation, arguments: {large-patience: 32s}}"
)
"""The gang is the whole cluster, so it has an eighth of the patience of a job that is just large: 4 seconds."""


def jobs() -> list[TraceJob]:
    """A small job of half a node every 1.1 s, which runs for 6 to 9 s and states 10 s, and the gang after 9 s."""
    small = [
        TraceJob(f"small-{i:02}", 1.1 * i, 6.0 + i * 7 % 4, "u", 1, {"cpu": 2000, "memory": 1}, limit=10.0)
        for i in range(int(SECONDS / 1.1))
    ]
    gang = TraceJob(GANG, 9.0, 9.0, "u", NODES, {"cpu": 1000 * CPUS, "memory": 1}, limit=10.0)
    return sorted([*small, gang], key=lambda job: job.submitted)


def nodes() -> list[TraceNode]:
    return [TraceNode(f"node-{i}", {"cpu": 1000 * CPUS, "memory": 1024}) for i in range(NODES)]


# ---- on the sandbox ----------------------------------------------------------------------------------------


def manifest(job: TraceJob) -> Manifest:
    amounts = {"cpu": f"{job.requests['cpu']}m", "memory": "1Mi"}
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", f"{job.duration:g}"],
        "resources": {"requests": amounts},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {
        "schedulerName": "volcano",
        "minAvailable": job.pods,
        "tasks": [{"name": "w", "replicas": job.pods, "template": template}],
    }
    metadata = {"name": job.name, "annotations": {"volcano.sh/max-run-time": f"{job.limit:g}s"}}
    return {"metadata": metadata, "spec": spec}


@asynccontextmanager
async def sandbox(conf: str, folder: Path) -> AsyncIterator[Client]:
    """A cluster whose scheduler has this configuration."""
    file = folder / "scheduler.conf"
    file.write_text(conf)
    async with (
        Sandbox(
            NODES,
            node_shapes=[parse(f"cpu={CPUS},memory=4Gi")],
            components=("scheduler", "controller-manager"),
            component_arguments={"scheduler": (f"--scheduler-conf={file}",)},
            path=folder / "kubeconfig",
            logs=folder / "logs",
        ) as made,
        Client.from_kubeconfig(made.kubeconfig) as client,
    ):
        while ((await client.get(QUEUE, "default")).get("status") or {}).get("state") != "Open":
            await asyncio.sleep(0.1)
        yield client


async def play(conf: str) -> list[str]:
    """Submit the jobs and return the frames."""
    frames: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with sandbox(conf, Path(folder)) as client:
            begin, waiting = time.monotonic(), jobs()
            for second in range(0, SECONDS, EVERY):
                while waiting and waiting[0].submitted < second + EVERY:
                    await asyncio.sleep(max(0.0, begin + waiting[0].submitted - time.monotonic()))
                    await client.create(JOB, manifest(waiting.pop(0)), "default")
                await asyncio.sleep(max(0.0, begin + second + EVERY - time.monotonic()))
                frames.append(frame(second + EVERY, await client.list(POD, "default")))
                print(frames[-1], flush=True)
    return frames


def frame(second: int, pods: Sequence[Manifest]) -> str:
    """One line: what runs on each node, a character for a cpu, and who waits."""
    running: dict[str, str] = {}
    small, gang, ended = 0, 0, 0
    for pod in pods:
        is_gang, phase = pod["metadata"]["name"].startswith(GANG), pod["status"].get("phase", "Pending")
        node = pod["spec"].get("nodeName")
        if phase in ("Succeeded", "Failed"):
            ended += is_gang
        elif node:
            running[node] = running.get(node, "") + ("#" * CPUS if is_gang else "oo")
        else:
            small, gang = small + (not is_gang), gang + is_gang
    cells = "  ".join(running.get(f"node-{i}", "").ljust(CPUS, ".") for i in range(NODES))
    state = "waits" if gang else "has ended" if ended else "runs" if "#" in cells else ""
    who = f"{small:2} small {'job waits' if small == 1 else 'jobs wait'}"
    return f"{second:3} s  {cells}  {who}" + (f"; the gang {state}" if state else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with", dest="only", action="store_true")
    options = parser.parse_args()
    for name, conf in (("without", WITHOUT), ("with", WITH)):
        if name == "without" and options.only:
            continue
        print(f"{name} the plugin reservation")
        asyncio.run(play(conf))


if __name__ == "__main__":
    main()
