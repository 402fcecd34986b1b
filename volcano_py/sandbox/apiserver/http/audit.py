"""The audit log: one line for every request, as Kubernetes writes it (audit.k8s.io/v1 Event, level Metadata).

A thread writes the buffered lines, so that no request waits for the disk. If the disk is too slow, lines are dropped
and their number is logged.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from volcano_py.sandbox import private_files
from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.registry.request import Request, User

LOG = logging.getLogger(__name__)

PERIOD = 0.2  # seconds for which lines are buffered
MOST_LINES = 100_000  # buffered while the disk is slow

RECEIVED: web.RequestKey[str] = web.RequestKey("received", str)
SENDER: web.RequestKey[User] = web.RequestKey("sender", User)  # the sender, before impersonation
IMPERSONATED: web.RequestKey[User] = web.RequestKey("impersonated", User)  # the impersonated identity, if any
REQUEST: web.RequestKey[Request] = web.RequestKey("request", Request)
STREAMED: web.RequestKey[int] = web.RequestKey("streamed", int)  # bytes of a watch so far

RESPONSE_BYTES = "sandbox.volcano.sh/response-bytes"
"""The annotation with the size of the response's body; Kubernetes reports sizes as metrics, which have no client."""

_PATH_VERBS = {"GET": "get", "HEAD": "head", "POST": "post", "PUT": "put", "PATCH": "patch", "DELETE": "delete"}


class AuditLog:
    """An open log file; OSError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = private_files.open_for_append(path)
        self.lines: list[bytes] = []
        self.left_out = 0
        self.timer: asyncio.TimerHandle | None = None
        self.writing = False
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="audit")

    def note(self, http: web.BaseRequest, answer: web.StreamResponse) -> None:
        """Add the line of a completed request."""
        if len(self.lines) >= MOST_LINES:
            self.left_out += 1
            return
        self.lines.append(orjson.dumps(event(http, answer), option=orjson.OPT_APPEND_NEWLINE))
        if self.timer is None and not self.writing:
            self.timer = asyncio.get_running_loop().call_later(PERIOD, self._write)

    def _write(self) -> None:
        self.timer = None
        lines, self.lines = self.lines, []
        self.writing = True
        future = asyncio.get_running_loop().run_in_executor(self.thread, self.file.write, b"".join(lines))
        future.add_done_callback(self._written)

    def _written(self, future: asyncio.Future[Any]) -> None:
        self.writing = False
        if future.exception() is not None:
            LOG.error("audit log %s: %s; its lines are lost", self.path, future.exception())
        if self.left_out:
            LOG.warning("audit log %s: the disk was too slow for %d lines", self.path, self.left_out)
            self.left_out = 0
        if self.lines:
            self.timer = asyncio.get_running_loop().call_later(PERIOD, self._write)

    def close(self) -> None:
        """Write the remaining lines."""
        if self.timer is not None:
            self.timer.cancel()
        self.thread.shutdown(wait=True)
        try:
            self.file.write(b"".join(self.lines))
        except OSError as error:
            LOG.error("audit log %s: %s; its lines are lost", self.path, error)
        self.file.close()


def event(http: web.BaseRequest, answer: web.StreamResponse) -> dict[str, Any]:
    """The Event of one request."""
    code = answer.status
    sender, request = http.get(SENDER), http.get(REQUEST)
    out: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": str(uuid.uuid4()),
        "stage": "ResponseComplete",
        "requestURI": http.raw_path,
        "verb": request.verb if request is not None else _PATH_VERBS.get(http.method, http.method.lower()),
        "user": _user(sender) if sender is not None else {},
    }
    impersonated = http.get(IMPERSONATED)
    if impersonated is not None:
        out["impersonatedUser"] = _user(impersonated)
    out["sourceIPs"] = [http.remote] if http.remote else []
    out["userAgent"] = http.headers.get("User-Agent", "")
    if request is not None:
        resource = request.resource
        reference = {
            "resource": resource.plural,
            "namespace": request.namespace,
            "name": request.name,
            "apiGroup": resource.group,
            "apiVersion": resource.version,
            "subresource": request.subresource,
        }
        out["objectRef"] = {key: value for key, value in reference.items() if value}
    out["responseStatus"] = {"metadata": {}, "code": code}
    out["requestReceivedTimestamp"] = http[RECEIVED]
    out["stageTimestamp"] = metadata.now_micro()
    annotations = out["annotations"] = {RESPONSE_BYTES: str(_size(http, answer))}
    if code != 401:
        annotations["authorization.k8s.io/decision"] = "forbid" if code == 403 else "allow"
    return out


def _size(http: web.BaseRequest, answer: web.StreamResponse) -> int:
    body = answer.body if isinstance(answer, web.Response) else None
    return len(body) if isinstance(body, bytes | bytearray) else http.get(STREAMED, 0)


def _user(user: User) -> dict[str, Any]:
    rows = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {key: value for key, value in rows.items() if value}
