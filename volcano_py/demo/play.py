"""Runs the demo: a sandbox in a separate process, jobs submitted on schedule, and the live view."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from rich.console import Console
from rich.live import Live

from volcano_py.api.kinds import JOB, QUEUE
from volcano_py.demo.story import Story
from volcano_py.demo.view import live, summary
from volcano_py.demo.watcher import Watcher
from volcano_py.demo.why import AFTER, Why, explain
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, Unreachable
from volcano_py.sandbox import running
from volcano_py.sandbox.volcano import free_port, has_dashboard

START_SECONDS = 60.0
LONGEST = 80.0
"""Maximum seconds of the demo."""


class DemoError(Exception):
    """The demo cannot continue; the message contains the remedy."""


@contextlib.asynccontextmanager
async def cluster(story: Story, kubeconfig: Path, keep: bool, dashboard: int) -> AsyncIterator[Client]:
    """A sandbox for the demo; it keeps running if `keep`. `dashboard`: the dashboard's port, 0 for none."""
    if running.find(kubeconfig) is not None:
        raise DemoError(
            f"a sandbox is up with {kubeconfig}; stop it with "
            f"`volcano-py sandbox down --kubeconfig {kubeconfig}`, or set another --kubeconfig"
        )
    kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    kubeconfig.unlink(missing_ok=True)
    log = kubeconfig.parent / "sandbox.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "volcano_py.cli.main",
            "sandbox",
            "up",
            "--nodes",
            str(story.nodes),
            "--node-shape",
            f"cpu={story.cpus},memory=64Gi",
            "--kubeconfig",
            str(kubeconfig),
            *(("--dashboard", "--dashboard-port", str(dashboard)) if dashboard else ()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        async with await _connect(process, kubeconfig, log) as client:
            yield client
        if keep:
            return
    finally:
        if not keep and process.returncode is None:
            process.terminate()
            await process.wait()


async def _connect(process: asyncio.subprocess.Process, kubeconfig: Path, log: Path) -> Client:
    """Wait until the API server responds."""
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        if process.returncode is not None:
            raise DemoError(f"the sandbox did not start: {_last_line(log)}")
        if kubeconfig.exists():
            client = Client.from_kubeconfig(str(kubeconfig))
            try:
                await client.list(QUEUE)
                return client
            except (ApiError, Unreachable, OSError):
                await client.close()
        await asyncio.sleep(0.1)
    raise DemoError(f"the sandbox does not respond; see {log}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"see {log}"


async def play(story: Story, kubeconfig: Path, keep: bool, with_dashboard: bool, console: Console) -> bool:
    """Run the demo; True if it ended as expected. `with_dashboard`: serve the dashboard if it is installed."""
    began = time.monotonic()
    console.print(f"Starting a cluster of {story.nodes} nodes with {story.cpus} cpu each …")
    dashboard = free_port() if with_dashboard and has_dashboard() else 0
    async with cluster(story, kubeconfig, keep, dashboard) as client:
        watcher = Watcher(client)
        await watcher.start()
        await _open_queues(story, watcher, client)
        took = time.monotonic() - began
        address = ""
        if dashboard:
            token = kubeconfig.absolute().with_name(f"{kubeconfig.name}.dashboard-token").read_text().strip()
            address = f"http://127.0.0.1:{dashboard}/?token={token}"
            console.print(f"The dashboard is at {address} in a few seconds.", soft_wrap=True, highlight=False)
        console.print(f"The API server, the scheduler and the controllers run after {took:.1f} s. The demo begins.\n")
        watcher.started = time.monotonic()
        try:
            why = await _story(story, watcher, client, console, kubeconfig)
        finally:
            await watcher.stop()
        console.print(summary(story, watcher, str(kubeconfig) if keep else None, address, why))
    return all(h.phase == "Completed" for h in watcher.histories.values())


async def _open_queues(story: Story, watcher: Watcher, client: Client) -> None:
    """Create the queues, and wait until the queue controller has opened them and the scheduler has counted what they
    use: all components then work.
    """
    for queue in story.queues:
        await client.create(QUEUE, queue)
    names = {q["metadata"]["name"] for q in story.queues}
    while watcher.now < START_SECONDS:
        found = {q["metadata"]["name"]: q.get("status") or {} for q in watcher.objects(QUEUE)}
        if all(found.get(name, {}).get("state") == "Open" and "allocated" in found[name] for name in names):
            return
        await asyncio.sleep(0.05)
    raise DemoError(
        "the queues are not open, or the scheduler has not run a cycle; "
        "see the components' logs in the folder of the kubeconfig"
    )


async def _story(story: Story, watcher: Watcher, client: Client, console: Console, kubeconfig: Path) -> Why | None:
    """Submit the jobs; returns why the first gang that waited did."""
    steps = list(story.steps)
    description = ""
    terminal = console.is_terminal
    question: asyncio.Task[Why | None] | None = None
    why: Why | None = None
    with Live(console=console, refresh_per_second=8, transient=True) if terminal else contextlib.nullcontext() as view:
        while watcher.now < LONGEST:
            if steps and watcher.now >= steps[0].at:
                step = steps.pop(0)
                description = f"{step.name}: {step.description}"
                watcher.submitted(step.name)
                await client.create(JOB, step.job, "default")
                watcher.changes.append(f"{watcher.now:5.1f} s  {description}")
            waiting = watcher.waiting(AFTER)
            if question is None and waiting:
                question = asyncio.create_task(explain(kubeconfig, waiting[0]))
            if question is not None and question.done() and why is None:
                why = question.result()
                watcher.changes += [f"{watcher.now:5.1f} s  {line}" for line in why.lines()] if why else []
                question = None if why is None else question
            if view is not None:
                view.update(live(story, watcher, description, why))
                watcher.changes.clear()
            else:
                for line in watcher.changes:
                    console.print(line, highlight=False)
                watcher.changes.clear()
            if not steps and all(h.ended is not None for h in watcher.histories.values()):
                return why
            await asyncio.sleep(0.1)
    raise DemoError(f"not all jobs have finished after {LONGEST:.0f} s; see the logs in the folder of the kubeconfig")
