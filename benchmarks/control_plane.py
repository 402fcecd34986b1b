"""What the controllers and the webhook manager cost: CPU a pod, requests a job, work at rest and after a restart.

API server and scheduler run in processes of their own; only the process that is measured is looked at. Its requests are
counted in the API server's audit log, by user agent.
"""

from __future__ import annotations

import asyncio
import compileall
import contextlib
import os
import signal
import ssl
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import click
import orjson

import volcano_py
from benchmarks.cluster import Cluster, Manifest, cluster, cpu_seconds, pod, rate, resident, until_running
from benchmarks.figures import show
from volcano_py.api.kinds import JOB

AGENT = "volcano-py/controller-manager"
WRITES = ("create", "update", "patch", "delete", "deletecollection")
QUIET = 20.0
"""Seconds that are looked at for a controller that has nothing to do."""
ANSWERS = 20_000
LANES = 8

TARGETS = {
    "cpu_ms_a_pod": ("<=", 1.0),
    "pod_creations_a_pod": ("<=", 1.0),
    "status_writes_a_job": ("<=", 4.0),
    "large_to_small": ("<=", 1.0),
    "rest_cpu_percent": ("<", 1.0),
    "rest_writes": ("<=", 0.0),
    "restart_writes": ("<=", 0.0),
    "answers_per_s": (">=", 2000.0),
    "answer_p99_ms": ("<", 20.0),
}


def job(name: str, size: int, seconds: str) -> Manifest:
    """A gang whose pods run for so long."""
    spec = {k: v for k, v in pod(0)["spec"].items() if k != "schedulerName"}
    spec["containers"] = [{**spec["containers"][0], "command": ["sleep", seconds]}]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": size,
            "schedulerName": "volcano",
            "tasks": [{"name": "main", "replicas": size, "template": {"spec": spec}}],
        },
    }


@contextlib.asynccontextmanager
async def process(c: Cluster, name: str, *flags: str) -> AsyncIterator[int]:
    """One of our programs on this cluster; gives its pid."""
    # As after an installation: without compiled modules a start would take half a second more.
    compileall.compile_dir(volcano_py.__path__[0], quiet=2)
    log = (c.folder / f"{name}.log").open("ab")
    program = [sys.executable, "-m", "volcano_py.cli.main", name, "--kubeconfig", str(c.kubeconfig)]
    started = await asyncio.create_subprocess_exec(*program, *flags, stdout=log, stderr=log)
    try:
        yield started.pid
    finally:
        log.close()
        with contextlib.suppress(ProcessLookupError):
            started.send_signal(signal.SIGTERM)
        await started.wait()


CONTROLLERS = ("--leader-elect=false", "--kube-api-qps=5000", "--kube-api-burst=10000")


def writes(c: Cluster, after: int = 0) -> Counter[tuple[str, str]]:
    """(verb, resource/subresource) of the controllers' writes in the audit log, from a line on."""
    found: Counter[tuple[str, str]] = Counter()
    for line in (c.folder / "audit.log").read_bytes().splitlines()[after:]:
        event = orjson.loads(line)
        if event["userAgent"] == AGENT and event["verb"] in WRITES:
            about = event.get("objectRef", {})
            what = about.get("resource", "") + ("/" + about["subresource"] if about.get("subresource") else "")
            found[event["verb"], what] += 1
    return found


def lines(c: Cluster) -> int:
    return (c.folder / "audit.log").read_bytes().count(b"\n")


async def until_phase(c: Cluster, phase: str, jobs: int) -> None:
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        found = await c.client.list(JOB, None)
        if sum((one.get("status") or {}).get("state", {}).get("phase") == phase for one in found) >= jobs:
            return
        await asyncio.sleep(2)
    raise click.ClickException(f"not all of {jobs} jobs are {phase} after 900 s")


async def life(jobs: int, size: int) -> dict[str, float]:
    """Jobs from their submission to Completed."""
    pods = jobs * size
    async with (
        cluster(max(10, pods // 50), "scheduler", "--audit-log", "FOLDER/audit.log") as c,
        process(c, "controller-manager", *CONTROLLERS) as pid,
    ):
        await asyncio.sleep(3)
        before = cpu_seconds(pid)
        await rate(jobs, lambda i: c.client.create(JOB, job(f"job-{i:04d}", size, "5")))
        await until_phase(c, "Completed", jobs)
        used = cpu_seconds(pid) - before
        await asyncio.sleep(1)
        made = writes(c)
        rest = sum(made.values()) - made["create", "pods"] - made["update", "jobs/status"] - made["create", "events"]
        return {
            "cpu_ms_a_pod": used / pods * 1000,
            "pod_creations_a_pod": made["create", "pods"] / pods,
            "status_writes_a_job": made["update", "jobs/status"] / jobs,
            "other_writes_a_job": rest / jobs,
            "events_a_job": (made["create", "events"] + made["patch", "events"]) / jobs,
        }


async def alone(jobs: int, size: int) -> float:
    """CPU seconds a pod, without counting requests."""
    pods = jobs * size
    async with (
        cluster(max(10, pods // 50), "scheduler") as c,
        process(c, "controller-manager", *CONTROLLERS) as pid,
    ):
        await asyncio.sleep(3)
        before = cpu_seconds(pid)
        await rate(jobs, lambda i: c.client.create(JOB, job(f"job-{i:04d}", size, "infinity")))
        await until_phase(c, "Running", jobs)
        await asyncio.sleep(2)
        return (cpu_seconds(pid) - before) / pods


async def rest(jobs: int, size: int) -> dict[str, float]:
    """Many jobs that run: what the controllers do then, and what they do after a restart."""
    pods = jobs * size
    async with cluster(max(10, pods // 100), "scheduler", "--audit-log", "FOLDER/audit.log") as c:
        async with process(c, "controller-manager", *CONTROLLERS) as pid:
            await rate(jobs, lambda i: c.client.create(JOB, job(f"job-{i:05d}", size, "infinity")))
            await until_running(c.client, pods)
            await until_phase(c, "Running", jobs)
            await asyncio.sleep(10)
            begun, before, used = time.perf_counter(), lines(c), cpu_seconds(pid)
            await asyncio.sleep(QUIET)
            percent = (cpu_seconds(pid) - used) / (time.perf_counter() - begun) * 100
            quiet = writes(c, before)
            memory = resident(pid)
        before = lines(c)
        async with process(c, "controller-manager", *CONTROLLERS) as pid:
            used, idle = 0.0, 0
            while idle < 3:  # until it has looked at everything
                await asyncio.sleep(2)
                now = cpu_seconds(pid)
                idle = idle + 1 if now - used < 0.1 else 0
                used = now
            await asyncio.sleep(2)
            restarted = writes(c, before)
        return {
            "rest_cpu_percent": percent,
            "rest_writes": float(sum(quiet.values())),
            "rest_mib": memory,
            "restart_cpu_s": used,
            "restart_writes": float(sum(restarted.values())),
        }


async def admission() -> dict[str, float]:
    """AdmissionReviews of new Jobs, one after the other in each lane: half of them to change, half to check."""
    async with cluster(1, "none") as c:
        port = 18443
        flags = (
            "--register",
            "--listen-address=127.0.0.1",
            f"--port={port}",
            f"--webhook-url=https://127.0.0.1:{port}",
        )
        async with process(c, "webhook-manager", *flags) as pid:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(pid, {0})
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connector = aiohttp.TCPConnector(ssl=context, limit=LANES)
            async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:
                await _until_answering(session)
                return await _ask(session)


async def _until_answering(session: aiohttp.ClientSession) -> None:
    for _ in range(100):
        with contextlib.suppress(aiohttp.ClientError):
            async with session.post("/jobs/validate", json={}) as answer:
                await answer.read()
                return
        await asyncio.sleep(0.2)
    raise click.ClickException("the webhook manager does not answer")


async def _ask(session: aiohttp.ClientSession) -> dict[str, float]:
    reviewed = job("train", 20, "5")
    reviewed["spec"]["queue"] = "default"
    took: list[float] = []
    numbers = iter(range(ANSWERS))

    async def lane() -> None:
        for i in numbers:
            request = {"uid": str(i), "operation": "CREATE", "namespace": "default", "object": reviewed}
            review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
            body = orjson.dumps(review)
            begun = time.perf_counter()
            path = "/jobs/mutate" if i % 2 else "/jobs/validate"
            async with session.post(path, data=body, headers={"Content-Type": "application/json"}) as answer:
                found = orjson.loads(await answer.read())
            took.append(time.perf_counter() - begun)
            if not found["response"]["allowed"]:
                raise click.ClickException(f"rejected: {found}")

    begun = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(LANES)))
    all_of_it = time.perf_counter() - begun
    return {"answers_per_s": ANSWERS / all_of_it, "answer_p99_ms": statistics.quantiles(took, n=100)[98] * 1000}


ROWS = (
    ("cpu_ms_a_pod", "{jobs} Jobs x {size} pods: controllers' CPU a pod", "ms"),
    ("pod_creations_a_pod", "  creations a pod", ""),
    ("status_writes_a_job", "  status writes a Job, to Completed", ""),
    ("other_writes_a_job", "  other writes a Job (PodGroup made and deleted)", ""),
    ("events_a_job", "  Events a Job", ""),
    ("small_ms", "100 Jobs x 20 pods: CPU a pod", "ms"),
    ("large_ms", "1 Job x 2,000 pods: CPU a pod", "ms"),
    ("large_to_small", "  as a ratio", ""),
    ("rest_cpu_percent", "{many} Jobs at rest: CPU", "%"),
    ("rest_writes", "  writes in 20 s", ""),
    ("rest_mib", "  memory", "MiB"),
    ("restart_cpu_s", "  CPU of a restart", "s"),
    ("restart_writes", "  writes of a restart", ""),
    ("answers_per_s", "admission: answers", "/s"),
    ("answer_p99_ms", "  99th percentile", "ms"),
)


@click.command("control-plane")
@click.option("--jobs", type=click.IntRange(1), default=500, show_default=True, help="Jobs from start to end.")
@click.option("--size", type=click.IntRange(1), default=20, show_default=True, help="Their pods.")
@click.option("--many", type=click.IntRange(1), default=10_000, show_default=True, help="Jobs at rest, of 5 pods each.")
@click.option("--only", multiple=True, type=click.Choice(["life", "large", "rest", "admission"]))
@click.option("--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to this file.")
def control_plane(jobs: int, size: int, many: int, only: tuple[str, ...], out: Path | None) -> None:
    """Measure controllers and admission: CPU and requests a job, at rest, after a restart (about ten minutes)."""

    async def measure() -> dict[str, float]:
        figures: dict[str, float] = {}
        if not only or "life" in only:
            figures |= await life(jobs, size)
        if not only or "large" in only:
            small, large = await alone(100, 20), await alone(1, 2000)
            figures |= {"small_ms": small * 1000, "large_ms": large * 1000, "large_to_small": large / small}
        if not only or "rest" in only:
            figures |= await rest(many, 5)
        if not only or "admission" in only:
            figures |= await admission()
        return figures

    if not Path("/proc/self/smaps_rollup").exists():
        raise click.ClickException("this benchmark reads /proc/PID/smaps_rollup, which only Linux has")
    figures = asyncio.run(measure())
    show(figures, ROWS, TARGETS, {"jobs": jobs, "size": size, "many": many}, out)
