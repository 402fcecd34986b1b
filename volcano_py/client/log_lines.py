"""The logs of a job's pods as one stream of lines. A stream that breaks continues behind the last line, or an error
contains the reason.

Every request has timestamps: after an interruption the log is read from the second of the last line, and lines that
were returned already are left out. kubectl logs has no counterpart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from volcano_py.api import batch, names
from volcano_py.api.kinds import JOB, POD
from volcano_py.cli.follow import Source, following
from volcano_py.cli.job_waits import FINAL
from volcano_py.client.errors import ClientError, LogsInterrupted, NotFound, translated, translating
from volcano_py.kube.errors import ApiError, KubeError
from volcano_py.kube.errors import NotFound as KubeNotFound

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]
ATTEMPTS = 6
"""How often a broken log is tried again without a new line in between."""
FIRST_PAUSE, MAX_PAUSE = 0.25, 8.0
"""Seconds before a broken log is tried again; the pause doubles."""
_TICK = 0.25
_BACKLOG = 10_000


@dataclass(frozen=True)
class LogLine:
    """One line. `time` is that of the container runtime. `notice`: a message of the client, not of the pod."""

    pod: str
    text: str
    time: str = ""
    notice: bool = False

    def __str__(self) -> str:
        return f"[{self.pod}] {self.text}"


@dataclass(frozen=True)
class Selection:
    """Which logs to read. Empty or None: no restriction."""

    task: str = ""
    index: int | None = None
    container: str = ""
    tail: int | None = None
    since: float | None = None

    def has(self, pod: Manifest) -> bool:
        labels = pod["metadata"].get("labels") or {}
        return (not self.task or labels.get(names.TASK_SPEC) == self.task) and (
            self.index is None or labels.get(names.TASK_INDEX) == str(self.index)
        )


async def read(client: Client, namespace: str, name: str, selection: Selection) -> AsyncIterator[LogLine]:
    """What the pods have logged so far, pod by pod."""
    about = f"job {namespace}/{name}"
    with translating(about, client):
        job = await client.get(JOB, name, namespace)
        found = await client.list(POD, namespace, label_selector=f"{names.JOB_NAME}={name}")
    pods = sorted(filter(selection.has, found), key=_in_order)
    if not pods:
        phase = ((job.get("status") or {}).get("state") or {}).get("phase") or batch.PENDING
        raise NotFound(
            f"it is {phase}, and no pod matches", object=about, remedy="wait until it runs, or see client.explain"
        )
    for pod in pods:
        try:
            body = await client.raw("GET", _path(pod), params=_Position(selection).query(pod))
        except ApiError as error:
            if error.status in (401, 403):
                raise translated(error, f"pod {namespace}/{pod['metadata']['name']}", client) from None
            yield LogLine(pod["metadata"]["name"], f"no log: {error}", notice=True)
            continue
        except KubeError as error:
            raise translated(error, f"pod {namespace}/{pod['metadata']['name']}", client) from None
        for line in body.decode(errors="replace").split("\n"):
            if line:
                stamp, _, text = line.partition(" ")
                yield LogLine(pod["metadata"]["name"], text, stamp)


async def follow(client: Client, namespace: str, name: str, selection: Selection) -> AsyncIterator[LogLine]:
    """The lines of all pods, also of later ones, until the job has ended."""
    lines: asyncio.Queue[LogLine | ClientError | None] = asyncio.Queue(_BACKLOG)
    pump = asyncio.create_task(_pump(client, namespace, name, selection, lines))
    try:
        while True:
            line = await lines.get()
            if line is None:
                return
            if isinstance(line, ClientError):
                raise line
            yield line
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


async def _pump(client: Client, namespace: str, name: str, selection: Selection, lines: asyncio.Queue[Any]) -> None:
    """Start a reader for each pod whose container has started."""
    about = f"job {namespace}/{name}"
    pods = Source(POD, namespace, f"{names.JOB_NAME}={name}")
    readers: dict[str, asyncio.Task[None]] = {}
    try:
        with translating(about, client):
            await client.get(JOB, name, namespace)
            async with following(client, Source.one(JOB, name, namespace), pods) as followed:
                while True:
                    for pod in sorted(filter(selection.has, followed.objects(1)), key=_in_order):
                        uid = pod["metadata"]["uid"]
                        if uid not in readers and _has_begun(pod):
                            readers[uid] = asyncio.create_task(_Reader(client, pod, selection, lines).run())
                    for reader in readers.values():
                        if reader.done() and (problem := reader.exception()) is not None:
                            raise problem
                    states = [((job.get("status") or {}).get("state") or {}) for job in followed.objects()]
                    ended = not states or states[0].get("phase") in (*FINAL, batch.ABORTED)
                    if ended and all(reader.done() for reader in readers.values()):
                        break
                    await followed.next(_TICK)
        await lines.put(None)
    except ClientError as error:
        await lines.put(error)
    finally:
        for reader in readers.values():
            reader.cancel()
        await asyncio.gather(*readers.values(), return_exceptions=True)


class _Position:
    """How far a log has been read."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.last: tuple[str, str] | None = None
        """The time of the last line that was returned: seconds, and their fraction."""
        self._stamp = ""
        self._same = 0
        """How many lines with the last time were returned."""
        self._skip = 0

    def query(self, pod: Manifest) -> dict[str, Any]:
        """The parameters of the next request."""
        containers = (pod.get("spec") or {}).get("containers") or [{}]
        found: dict[str, Any] = {
            "container": self._selection.container or containers[0].get("name", ""),
            "timestamps": "true",
        }
        if self.last is not None:
            # kubelet compares whole seconds
            found["sinceTime"] = f"{self.last[0]}Z"
            self._skip = self._same
        else:
            if self._selection.tail is not None:
                found["tailLines"] = self._selection.tail
            if self._selection.since is not None:
                found["sinceSeconds"] = max(1, round(self._selection.since))
        return found

    def is_new(self, stamp: str) -> bool:
        """Whether a line was not returned before; it counts as returned then."""
        head, _, fraction = stamp.rstrip("Z").partition(".")
        moment = (head, fraction.ljust(9, "0"))
        if self.last is not None:
            if moment < self.last:
                return False
            if moment == self.last:
                if self._skip:
                    self._skip -= 1
                    return False
                self._same += 1
                return True
        self.last, self._same, self._skip = moment, 1, 0
        return True


class _Reader:
    """Reads one pod's log until the pod has ended."""

    def __init__(self, client: Client, pod: Manifest, selection: Selection, lines: asyncio.Queue[Any]) -> None:
        self._client, self._pod, self._lines = client, pod, lines
        self._position = _Position(selection)
        self._name = pod["metadata"]["name"]

    async def run(self) -> None:
        """Raises LogsInterrupted."""
        attempts, pause = 0, FIRST_PAUSE
        while True:
            before, why = self._position.last, ""
            try:
                await self._stream()
                if await self._is_over():
                    return
            except KubeNotFound:
                await self._notice("the pod was deleted; its log ends here")
                return
            except KubeError as error:
                if isinstance(error, ApiError) and error.status in (401, 403):
                    raise translated(error, self._about, self._client) from None
                waits = isinstance(error, ApiError) and error.status == 400  # the container has not started again
                why = "" if waits else " ".join(str(error).split())
            if self._position.last != before:
                attempts, pause = 0, FIRST_PAUSE
            if why:
                attempts += 1
                if attempts > ATTEMPTS:
                    raise LogsInterrupted(
                        f"its log broke off and was tried again {ATTEMPTS} times: {why}",
                        object=self._about,
                        remedy="call logs again when the API server and the node of the pod can be reached",
                    )
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE, 2 * pause) if why else FIRST_PAUSE

    @property
    def _about(self) -> str:
        return f"pod {self._pod['metadata']['namespace']}/{self._name}"

    async def _stream(self) -> None:
        query = {**self._position.query(self._pod), "follow": "true"}
        async with self._client.stream(_path(self._pod), query) as reader:
            rest = b""
            while chunk := await reader.readany():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    await self._line(line)
            # without its end a line is not complete: it is read again, unless the container has ended
            if rest and await self._is_over():
                await self._line(rest)

    async def _line(self, raw: bytes) -> None:
        stamp, _, text = raw.decode(errors="replace").partition(" ")
        if self._position.is_new(stamp):
            await self._lines.put(LogLine(self._name, text, stamp))

    async def _is_over(self) -> bool:
        """Whether the pod has ended, so that its log is complete. Raises KubeError."""
        metadata = self._pod["metadata"]
        now: Manifest = await self._client.get(POD, self._name, metadata["namespace"])
        if now["metadata"].get("uid") != metadata.get("uid"):
            await self._notice("the pod was deleted and created again; the log of the former pod ends here")
            return True
        return (now.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    async def _notice(self, text: str) -> None:
        await self._lines.put(LogLine(self._name, text, notice=True))


def _has_begun(pod: Manifest) -> bool:
    """Whether a log exists: for a pod without a node the API server returns an empty, complete one."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(state in (status.get("state") or {}) for status in statuses for state in ("running", "terminated"))


def _in_order(pod: Manifest) -> tuple[str, int]:
    labels: Mapping[str, Any] = pod["metadata"].get("labels") or {}
    index = str(labels.get(names.TASK_INDEX, ""))
    return str(labels.get(names.TASK_SPEC, "")), int(index) if index.isdigit() else 0


def _path(pod: Manifest) -> str:
    return POD.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "log")
