"""Shadow mode beside a live scheduler on a sandbox: agreement, reported differences, and no write."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import waiting
from tests.e2e.cluster import job, until
from volcano_py.api.kinds import JOB, POD, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.runtime.server import Scheduler
from volcano_py.scheduler.shadow.comparison import Comparison

WITH_QUEUES = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: capacity}, {name: predicates}, {name: nodeorder}]
"""
WITHOUT_QUEUES = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


@asynccontextmanager
async def beside(
    tmp_path: Path, live: str, ours: str, nodes: int = 4, settle: float = 2.0
) -> AsyncIterator[tuple[Client, Scheduler]]:
    """A live scheduler with the configuration `live`, and a shadow with `ours` in this process."""
    files = [tmp_path / name for name in ("live.yaml", "ours.yaml")]
    for file, text in zip(files, (live, ours), strict=True):
        file.write_text(text)
    async with (
        Sandbox(
            nodes,
            node_shapes=[parse("cpu=4,memory=8Gi")],
            components=("scheduler", "controller-manager"),
            component_arguments={"scheduler": ("--scheduler-conf", str(files[0]))},
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
            audit=tmp_path / "audit.log",
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        # The live scheduler leads when it has bound a pod; before, all of its decisions would be late.
        await client.create(POD, first_pod(), "default")
        await until(lambda: has_node(client, "first"), "the live scheduler does not work")
        options = Options(
            kubeconfig=sandbox.kubeconfig,
            scheduler_conf=str(files[1]),
            shadow=True,
            shadow_settle=settle,
            enable_metrics=True,
            listen_address="127.0.0.1:0",
        )
        scheduler = Scheduler(options)
        running = asyncio.create_task(scheduler.run())

        async def ready() -> bool:
            if running.done():
                running.result()
            state = (await client.get(QUEUE, "default")).get("status", {}).get("state")
            return scheduler.cycles > 0 and state == "Open"

        try:
            await until(ready, "the shadow does not run")
            yield client, scheduler
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def has_node(client: Client, pod: str) -> bool:
    return bool((await client.get(POD, pod, "default"))["spec"].get("nodeName"))


def first_pod() -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": "first"}, "spec": {"schedulerName": "volcano", "containers": [container]}}


def comparison(scheduler: Scheduler) -> Comparison:
    assert scheduler.shadow is not None
    return scheduler.shadow.comparison


def differences(scheduler: Scheduler) -> list[str]:
    return [f"{d.outcome} {d.job}: {d.code}: {d.why}" for d in comparison(scheduler).differences]


async def fetch(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()


@pytest.mark.slow
async def test_with_the_same_configuration_they_agree_and_nothing_is_written(tmp_path: Path) -> None:
    """The jobs need four times the cluster: most wait until others end."""
    async with beside(tmp_path, WITH_QUEUES, WITH_QUEUES, nodes=8) as (client, scheduler):
        shapes = [(1, "1", 3), (3, "1", 5), (4, "1500m", 2), (2, "2", 6), (6, "500m", 4), (1, "3", 3)] * 6
        for number, (replicas, cpu, seconds) in enumerate(shapes):
            await client.create(JOB, job(f"j{number}", replicas, cpu, seconds=seconds))
        await client.create(JOB, job("waits", 10, "4", seconds=600))

        async def all_compared() -> bool:
            return comparison(scheduler).outcomes.total() >= len(shapes)

        await until(all_compared, "the jobs do not all start", 120)
        shown = json.loads(await fetch(f"http://127.0.0.1:{scheduler.ports['metrics']}/shadow"))
        metrics = await fetch(f"http://127.0.0.1:{scheduler.ports['metrics']}/metrics")
    assert differences(scheduler) == [] and comparison(scheduler).agreement == 1.0
    assert comparison(scheduler).outcomes == {"same": len(shapes)}
    assert shown["agreement"] == 1.0 and shown["jobs"]["same"] == len(shapes)
    assert f'volcano_py_shadow_jobs_total{{outcome="same"}} {float(len(shapes))}' in metrics
    requests = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    by_shadow = Counter(r["verb"] for r in requests if r["userAgent"] == "volcano-py/scheduler-shadow")
    assert by_shadow.keys() <= {"get", "list", "watch"} and by_shadow["watch"] >= 10, by_shadow
    agents = {r["userAgent"] for r in requests if r["verb"] not in ("get", "list", "watch")}
    assert not any("shadow" in agent for agent in agents)


async def test_jobs_that_only_the_live_scheduler_starts_are_reported_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "volcano_py.scheduler.shadow")
    async with beside(tmp_path, WITHOUT_QUEUES, WITH_QUEUES) as (client, scheduler):
        await client.create(QUEUE, {"metadata": {"name": "lab"}, "spec": {"weight": 1, "capability": {"cpu": "2"}}})
        await client.create(JOB, job("big", 3, "1", seconds=600, queue="lab"))
        await client.create(JOB, job("small", 2, "1", seconds=600))

        async def compared() -> bool:
            return comparison(scheduler).outcomes.total() >= 2

        await until(compared, "the starts are not compared")
    (line,) = differences(scheduler)
    assert line.startswith("live-only default/big-") and "QueueLimit" in line and "queue lab" in line.lower(), line
    assert comparison(scheduler).outcomes == {"same": 1, "live-only": 1}
    assert "shadow: 50.0 % agreement over 2 jobs" in caplog.text and f"shadow: {line}" in caplog.text


async def test_a_gang_that_only_the_live_scheduler_starts_in_part_is_reported(tmp_path: Path) -> None:
    without_gang = WITHOUT_QUEUES.replace(", {name: gang}", "")
    async with beside(tmp_path, without_gang, WITHOUT_QUEUES, nodes=1) as (client, scheduler):
        await client.create(JOB, job("gang", 4, "1", seconds=600))

        async def compared() -> bool:
            return comparison(scheduler).outcomes.total() >= 1

        await until(compared, "the start is not compared")
    (line,) = differences(scheduler)
    assert line.startswith("live-only default/gang-"), line
    assert "NotStated" not in line, line


async def test_jobs_that_the_shadow_would_start_earlier(tmp_path: Path) -> None:
    async with beside(tmp_path, WITH_QUEUES, WITHOUT_QUEUES, settle=1.0) as (client, scheduler):
        await client.create(QUEUE, {"metadata": {"name": "lab"}, "spec": {"weight": 1, "capability": {"cpu": "2"}}})
        await client.create(JOB, job("big", 3, "1", seconds=600, queue="lab"))

        async def missed() -> bool:
            return comparison(scheduler).outcomes["ours-only"] == 1

        await until(missed, "it is not missed")
        (line,) = differences(scheduler)
        assert line.startswith("ours-only default/big-") and "LiveWaits: the live scheduler states: " in line
        await client.patch(QUEUE, "lab", {"spec": {"capability": {"cpu": "8"}}})

        async def earlier() -> bool:
            return comparison(scheduler).earlier_jobs > 0

        await until(earlier, "what ours would have started earlier is not counted")
    (found,) = comparison(scheduler).earlier
    assert found.job.startswith("default/big-") and found.seconds >= 1.0
    assert comparison(scheduler).outcomes == {"ours-only": 1}
