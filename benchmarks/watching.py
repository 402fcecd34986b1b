"""What it costs to watch CronJobs with kopf, and what with our informer: time, processor, memory.

Each watcher runs in a process of its own against one sandbox; its own figures are without the server.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import orjson

from volcano_py.api.batch import CronJob
from volcano_py.api.kinds import CRONJOB
from volcano_py.controllers.kopf_watch import KopfFeed, KopfWatch
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer
from volcano_py.sandbox.cluster import Sandbox

SECONDS = 120.0


def cronjob(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "main", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": CRONJOB.api_version,
        "kind": "CronJob",
        "metadata": {"name": f"cron-{number:05}", "namespace": "default"},
        "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"tasks": [task]}}},
    }


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def watch(kubeconfig: str, how: str, count: int) -> dict[str, float]:
    """See all CronJobs, then a change of each; the changes are made by this process, too."""
    before = resident_mib()
    begun, used = time.perf_counter(), time.process_time()
    async with Client.from_kubeconfig(kubeconfig, qps=100_000, burst=100_000) as client:
        feed: KopfFeed[Any] | Informer[Any]
        if how == "kopf":
            by_hand = KopfWatch(client)
            feed = by_hand.feed(CRONJOB)
            task = asyncio.create_task(by_hand.run())
        else:
            feed = Informer(client, CRONJOB, type=CronJob)
            task = asyncio.create_task(feed.run())
        seen: dict[str, float] = {}

        def note_update(_: CronJob | None, new: CronJob, seen: dict[str, float] = seen) -> None:
            seen.setdefault(new.key, time.perf_counter())

        feed.on(update=note_update)
        await feed.synced.wait()
        await client.patch(CRONJOB, "cron-00000", {"metadata": {"labels": {"first": how}}}, "default")
        while not seen:  # kopf has been imported, and its stream is open
            await asyncio.sleep(0.01)
        result = {"until_watching_s": time.perf_counter() - begun, "until_watching_cpu_s": time.process_time() - used}
        await asyncio.sleep(6)  # what was needed for the start is let go
        seen.clear()
        gate = asyncio.Semaphore(16)
        made: dict[str, float] = {}

        async def change(number: int) -> None:
            async with gate:
                await client.patch(CRONJOB, f"cron-{number:05}", {"metadata": {"labels": {"n": how}}}, "default")
                made[f"default/cron-{number:05}"] = time.perf_counter()

        begun, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(change(number) for number in range(count)))
        writing = time.process_time() - used
        async with asyncio.timeout(SECONDS):
            while len(seen) < count:
                await asyncio.sleep(0.005)
        late = sorted(max(0.0, seen[key] - made[key]) for key in made)
        result |= {
            "changes_per_s": count / (max(seen.values()) - begun),
            "cpu_ms_per_change": 1000 * (time.process_time() - used) / count,
            "of_which_until_written_ms": 1000 * writing / count,
            "late_ms_p50": 1000 * late[count // 2],
            "late_ms_p99": 1000 * late[count * 99 // 100],
            "memory_mib": resident_mib() - before,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return result


async def import_seconds(module: str) -> float:
    """The time that a fresh interpreter needs for an import, without its own start."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return float(out)


async def compare(count: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Sandbox(0, components=(), path=Path(folder) / "kubeconfig") as sandbox,
            Client.from_kubeconfig(sandbox.kubeconfig, qps=100_000, burst=100_000) as client,
        ):
            for number in range(count):
                await client.create(CRONJOB, cronjob(number))
            found = {}
            for how in ("informer", "kopf"):
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "benchmarks.watching", sandbox.kubeconfig, how, str(count),
                    stdout=asyncio.subprocess.PIPE,
                )  # fmt: skip
                out, _ = await process.communicate()
                found[how] = orjson.loads(out)
    modules = {"informer": "volcano_py.kube.informer", "kopf": "kopf"}
    return {how: {"import_s": await import_seconds(modules[how]), **figures} for how, figures in found.items()}


@click.command()
@click.option("--count", default=500, show_default=True, help="CronJobs.")
def watching(count: int) -> None:
    """kopf against our informer."""
    found = asyncio.run(compare(count))
    print(f"{'':28}{'informer':>12}{'kopf':>12}")
    for name in found["kopf"]:
        print(f"{name:28}{found['informer'][name]:12.2f}{found['kopf'][name]:12.2f}")


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(asyncio.run(watch(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
