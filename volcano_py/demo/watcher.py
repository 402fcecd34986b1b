"""Observes the cluster of the demo through its API, and records when each job changes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from msgspec import Struct

from volcano_py.api.kinds import JOB, NODE, POD, PODGROUP, QUEUE
from volcano_py.api.quantity import milli_value
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer

Object = dict[str, Any]


class History(Struct):
    """Times of one job, in seconds after the start."""

    submitted: float
    first_bound: float | None = None
    last_bound: float | None = None
    ended: float | None = None
    phase: str = "-"


class Watcher:
    """Local copies of jobs, groups, pods, nodes and queues."""

    def __init__(self, client: Client) -> None:
        self.started = time.monotonic()
        self.histories: dict[str, History] = {}
        self.changes: list[str] = []
        """Lines to print if there is no live view."""
        self._kinds = {kind: Informer[Any](client, kind, dict) for kind in (JOB, PODGROUP, POD, NODE, QUEUE)}
        self._kinds[JOB].on(update=self._job_changed)
        self._kinds[POD].on(add=self._pod_changed, update=lambda _, new: self._pod_changed(new))
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(i.run()) for i in self._kinds.values()]
        for informer in self._kinds.values():
            await informer.synced.wait()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def now(self) -> float:
        return time.monotonic() - self.started

    def submitted(self, name: str) -> None:
        self.histories[name] = History(self.now)

    def waiting(self, seconds: float) -> list[str]:
        """The jobs that have waited for some seconds without a pod on a node."""
        return [
            name
            for name, history in self.histories.items()
            if history.first_bound is None and history.ended is None and self.now - history.submitted > seconds
        ]

    def objects(self, kind: Any) -> list[Object]:
        return list(self._kinds[kind].store.values())

    def job(self, name: str) -> Object | None:
        found: Object | None = self._kinds[JOB].store.get(f"default/{name}")
        return found

    def pods(self, job: str) -> list[Object]:
        return [p for p in self.objects(POD) if (p["metadata"].get("labels") or {}).get("volcano.sh/job-name") == job]

    def used(self) -> dict[str, int]:
        """Millicores in use, by node."""
        used: dict[str, int] = {}
        for p in self.objects(POD):
            node = p["spec"].get("nodeName")
            if node and p.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                used[node] = used.get(node, 0) + cpu_of(p)
        return used

    def _job_changed(self, _: Object, new: Object) -> None:
        name = new["metadata"]["name"]
        history = self.histories.get(name)
        if history is None:
            return
        phase = ((new.get("status") or {}).get("state") or {}).get("phase", "-")
        if phase != history.phase:
            history.phase = phase
            self.changes.append(f"{self.now:5.1f} s  job {name}: {phase}")
            if phase in ("Completed", "Failed", "Aborted", "Terminated"):
                history.ended = self.now

    def _pod_changed(self, pod: Object) -> None:
        job = (pod["metadata"].get("labels") or {}).get("volcano.sh/job-name")
        history = self.histories.get(job or "")
        if history is None or not pod["spec"].get("nodeName"):
            return
        if history.first_bound is None:
            history.first_bound = self.now
        if pod.get("status", {}).get("phase") == "Pending":
            history.last_bound = self.now


def cpu_of(pod: Object) -> int:
    """Millicores that a pod requests."""
    return sum(
        milli_value((c.get("resources") or {}).get("requests", {}).get("cpu", 0)) for c in pod["spec"]["containers"]
    )
