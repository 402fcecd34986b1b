"""`vcctl job logs`: the logs of a job's pods; with --follow also new lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from volcano_py.api import batch, names
from volcano_py.api.kinds import JOB, POD
from volcano_py.cli.follow import Source, following
from volcano_py.cli.job_waits import FINAL
from volcano_py.cli.terminal import passing, style
from volcano_py.kube.errors import ApiError, KubeError, NotFound

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]
_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
_RETRY = 0.5
"""Seconds between two requests for the log of a container that has not started."""
_PARTS = {"tailLines", "sinceSeconds"}
"""Options with which a repeated request starts at a different line."""


class Selection(NamedTuple):
    """Which logs to print, and how many lines. Empty or None: no restriction."""

    task: str = ""
    replica: int | None = None
    container: str = ""
    query: Mapping[str, Any] = {}

    def has(self, pod: Manifest) -> bool:
        """Whether a pod is selected."""
        labels = pod["metadata"].get("labels") or {}
        return (not self.task or labels.get(names.TASK_SPEC) == self.task) and (
            self.replica is None or labels.get(names.TASK_INDEX) == str(self.replica)
        )


async def show(
    client: Client, namespace: str, name: str, selection: Selection, follow: bool, prefix: bool | None
) -> None:
    """Print the logs of a job's pods. `prefix` None: lines start with the pod's name if there are several pods.

    Raises NotFound for a missing job, ValueError if no pod is selected.
    """
    job = await client.get(JOB, name, namespace)
    if follow:
        await _follow(client, namespace, name, selection, prefix is not False)
        return
    found = await client.list(POD, namespace, label_selector=f"{names.JOB_NAME}={name}")
    pods = sorted((p for p in found if selection.has(p)), key=_in_order)
    if not pods:
        phase = ((job.get("status") or {}).get("state") or {}).get("phase") or batch.PENDING
        raise ValueError(f"job {namespace}/{name} is {phase} and no pods match; see `vcctl job view -N {name}`")
    marked = len(pods) > 1 if prefix is None else prefix
    for number, pod in enumerate(pods):
        try:
            text = await client.raw("GET", _path(pod), params=_query(pod, selection))
        except ApiError as e:
            click.echo(f"{pod['metadata']['name']}: {e}", err=True)
            continue
        for line in text.decode(errors="replace").splitlines():
            _print(pod["metadata"]["name"] if marked else "", number, line)


async def _follow(client: Client, namespace: str, name: str, selection: Selection, marked: bool) -> None:
    """Print new lines until the job has finished and the logs of its pods have ended."""
    pods = Source(POD, namespace, f"{names.JOB_NAME}={name}")
    readers: dict[str, asyncio.Task[None]] = {}
    async with following(client, Source.one(JOB, name, namespace), pods) as followed, asyncio.TaskGroup() as group:
        while True:
            for pod in sorted(filter(selection.has, followed.objects(1)), key=_in_order):
                uid = pod["metadata"]["uid"]
                if uid not in readers and _has_begun(pod):
                    readers[uid] = group.create_task(_read(client, pod, selection, len(readers), marked))
            phases = [((job.get("status") or {}).get("state") or {}).get("phase") for job in followed.objects()]
            ended = not phases or phases[0] in (*FINAL, batch.ABORTED)
            if ended and all(task.done() for task in readers.values()):
                return
            await followed.next(_RETRY)


def _has_begun(pod: Manifest, states: tuple[str, ...] = ("running", "terminated")) -> bool:
    """Whether a log exists: for a pod without a node the API server returns an empty, complete one."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(state in (status.get("state") or {}) for status in statuses for state in states)


async def _read(client: Client, pod: Manifest, selection: Selection, number: int, marked: bool) -> None:
    """Print the lines of one pod until its containers have ended.

    The request is repeated if the container has not started, has restarted, or if the stream was interrupted.
    """
    prefix = pod["metadata"]["name"] if marked else ""
    printed = 0
    while True:
        run = _run(pod)
        try:
            before = printed
            async with client.stream(_path(pod), {**_query(pod, selection), "follow": "true"}) as reader:
                async for line in _lines(reader):
                    if before:
                        before -= 1  # already printed before the interruption
                        continue
                    _print(prefix, number, line)
                    printed += 1
            after = await _after(client, pod, run)
            if after is None:
                return
            if _run(after) != run:
                pod, printed = after, 0
            elif printed and _PARTS & selection.query.keys():
                return
        except NotFound:
            return
        except KubeError as e:
            if not isinstance(e, ApiError) or e.status != 400:  # 400: the container waits to start
                click.echo(f"{pod['metadata']['name']}: {e}", err=True)
                return
            await asyncio.sleep(_RETRY)


async def _after(client: Client, pod: Manifest, run: int) -> Manifest | None:
    """The pod after the end of its log, if there is more to read; None if the pod has ended.

    The status changes shortly after the log ends. Raises NotFound if the pod is deleted.
    """
    for _ in range(2):
        await asyncio.sleep(_RETRY)
        while True:
            now: Manifest = await client.get(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])
            phase = (now.get("status") or {}).get("phase")
            if now["metadata"].get("uid") != pod["metadata"].get("uid"):
                return None
            if phase in ("Succeeded", "Failed"):
                return now if _run(now) != run else None
            if _has_begun(now, ("running",)):
                break
            await asyncio.sleep(_RETRY)  # the container will restart
        if _run(now) != run:
            return now
    return now


def _run(pod: Manifest) -> int:
    """The number of restarts of the pod's containers."""
    return sum(status.get("restartCount", 0) for status in (pod.get("status") or {}).get("containerStatuses") or ())


async def _lines(reader: Any) -> AsyncIterator[str]:
    """The lines of a stream, of any length."""
    rest = b""
    while chunk := await reader.readany():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def _path(pod: Manifest) -> str:
    return POD.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "log")


def _query(pod: Manifest, selection: Selection) -> dict[str, Any]:
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    return {"container": selection.container or containers[0].get("name", ""), **selection.query}


def _in_order(pod: Manifest) -> tuple[str, int]:
    labels = pod["metadata"].get("labels") or {}
    index = str(labels.get(names.TASK_INDEX, ""))
    return str(labels.get(names.TASK_SPEC, "")), int(index) if index.isdigit() else 0


def _print(prefix: str, number: int, line: str) -> None:
    # As kubectl, the program's own output is printed as it is.
    line = passing(line)
    if not prefix:
        click.echo(line)
    elif sys.stdout.isatty():
        click.echo(f"{style(f'[{prefix}]', fg=_COLOURS[number % len(_COLOURS)])} {line}")
    else:
        click.echo(f"[{prefix}] {line}")
