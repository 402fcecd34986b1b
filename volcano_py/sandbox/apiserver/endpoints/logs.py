"""GET pods/x/log: the output of a container, from the kubelet's record in memory or the file of a real process."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.registry.api import Api, Plain, Stream
from volcano_py.sandbox.apiserver.registry.request import Request, flag, integer

Object = dict[str, Any]

POLL_SECONDS = 0.1  # between checks for new lines
LogFile = Callable[[str, str, str, str, int], Path | None]  # namespace, pod, uid, container, -1 latest or -2 previous


async def log(api: Api, request: Request) -> Plain | Stream:
    """The lines that the options select, and with follow also later ones."""
    entry = request.resource.collection.get(request.namespace, request.name)
    if entry is None:
        raise errors.not_found("", "pods", request.name)
    pod = entry.load()
    wanted = _container(request, pod)
    node = pod["spec"].get("nodeName")
    if not node:
        return Plain(None, 204, b"")
    previous, follow = flag(request.query, "previous"), flag(request.query, "follow")
    files: LogFile = api.extensions.get("log_files", lambda *_: None)
    # while a container waits for its next run, the latest is the previous one
    index = -2 if previous and "waiting" not in (_row(pod, wanted).get("state") or {}) else -1
    path = files(entry.namespace, entry.name, entry.uid, wanted, index)
    if previous and not _ran_before(pod, wanted):
        text = f'previous terminated container "{wanted}" in pod "{request.name}" not found'
        raise errors.bad_request(text)
    key = f"{entry.uid}/{wanted}"
    if path is None and key not in api.logs:
        _need_kubelet(api, node, f"containerLogs/{request.namespace}/{request.name}/{wanted}")
        _need_start(request, pod, wanted)
    choose = _choice(request)
    reader = _FileReader(path) if path is not None else _RecordReader(api, key)
    first = choose(await reader.read())
    if not follow or previous:
        return Plain(None, 200, first, "text/plain")

    def over() -> bool:
        current = request.resource.collection.get(request.namespace, request.name)
        return current is None or current.uid != entry.uid or not _runs(current.load(), wanted)

    return Stream(_follow(reader, first, over, flag(request.query, "timestamps")))


def _container(request: Request, pod: Object) -> str:
    names = [c["name"] for c in pod["spec"]["containers"]]
    inits = [c["name"] for c in pod["spec"].get("initContainers") or []]
    wanted = request.query.get("container", "")
    if wanted:
        if wanted not in names + inits:
            raise errors.bad_request(f"container {wanted} is not valid for pod {request.name}")
        return str(wanted)
    if len(names) > 1:
        text = f"a container name must be specified for pod {request.name}, choose one of: [{' '.join(names)}]"
        if inits:
            text += f" or one of the init containers: [{' '.join(inits)}]"
        raise errors.bad_request(text)
    return str(names[0])


def _row(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    rows = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((row for row in rows if row["name"] == container), {})


def _runs(pod: Object, container: str) -> bool:
    return "running" in (_row(pod, container).get("state") or {})


def _ran_before(pod: Object, container: str) -> bool:
    return bool((_row(pod, container).get("lastState") or {}).get("terminated"))


def _need_kubelet(api: Api, node: str, path: str) -> None:
    """Raise the error of a node without a kubelet."""
    if api.resource("coordination.k8s.io", "leases").collection.get("kube-node-lease", node) is None:
        raise errors.StatusError(500, "", f'Get "https://{node}:10250/{path}": no kubelet runs on node {node}')


def _need_start(request: Request, pod: Object, container: str) -> None:
    waiting = (_row(pod, container).get("state") or {}).get("waiting")
    if waiting is not None:
        text = f'container "{container}" in pod "{request.name}" is waiting to start: {waiting.get("reason", "")}'
        raise errors.bad_request(text)


# --- selection of lines ----------------------------------------------------------------------------------------------


def _choice(request: Request) -> Callable[[bytes], bytes]:
    """The lines of a log after tailLines, sinceSeconds, sinceTime, timestamps and limitBytes."""
    query = request.query
    tail = integer(query, "tailLines") if "tailLines" in query else -1
    limit = integer(query, "limitBytes") if "limitBytes" in query else -1
    since = query.get("sinceTime", "").encode()
    if "sinceSeconds" in query:
        moment = datetime.now(UTC) - timedelta(seconds=integer(query, "sinceSeconds"))
        since = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
    stamped = flag(query, "timestamps")

    def choose(text: bytes) -> bytes:
        lines = _lines(text)
        if since:
            lines = [line for line in lines if line.partition(b" ")[0].rstrip(b"Z") >= since.rstrip(b"Z")]
        if tail >= 0:
            lines = lines[len(lines) - min(tail, len(lines)) :]
        out = _shown(lines, stamped)
        return out[:limit] if limit >= 0 else out

    return choose


def _lines(text: bytes) -> list[bytes]:
    """Lines with their ends; a carriage return is part of a line."""
    *whole, rest = text.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _shown(lines: list[bytes], stamped: bool) -> bytes:
    return b"".join(lines if stamped else (line.partition(b" ")[2] for line in lines))


# --- sources of lines ------------------------------------------------------------------------------------------------


class _RecordReader:
    """The output of hollow containers."""

    def __init__(self, api: Api, key: str) -> None:
        self.api, self.key, self.offset = api, key, 0

    async def read(self) -> bytes:
        """The whole lines since the last call."""
        text = self.api.logs.get(self.key, b"")
        out = text[self.offset :]
        self.offset = len(text)
        return out


class _FileReader:
    """A file that grows and is rotated: its old content moves to <name>.1."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.inode = path, 0, 0

    async def read(self) -> bytes:
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes:
        out = b""
        older = self.path.with_name(self.path.name + ".1")
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self.inode:
                with contextlib.suppress(OSError), older.open("rb") as before:
                    before.seek(self.offset)
                    out = before.read()
                self.inode, self.offset = inode, 0
            file.seek(self.offset)
            data = file.read()
            self.offset += len(data)
            out += data
        return out


async def _follow(reader: Any, first: bytes, over: Callable[[], bool], stamped: bool) -> AsyncGenerator[bytes, None]:
    yield first
    rest = b""
    while True:
        last = over()
        lines = _lines(rest + await reader.read())
        rest = lines.pop() if lines and not last and not lines[-1].endswith(b"\n") else b""
        if lines:
            yield _shown(lines, stamped)
        if last:
            return
        await asyncio.sleep(POLL_SECONDS)
