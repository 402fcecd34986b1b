"""Deletes Jobs some time after they have finished. Kubernetes: the TTL-after-finished controller."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.schema.codec import parse_time
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

JOBS = "jobs.batch"


def controller(api: Api) -> Controller:
    client = Client(api, "ttl-after-finished-controller")
    jobs = api.resource("batch", "jobs").collection

    def concerns(event: Event) -> Iterable[str]:
        if event.type != DELETED and b'"ttlSecondsAfterFinished":' in event.entry.tail:
            yield event.entry.key

    async def sync(key: Any) -> float | None:
        entry = jobs.entries.get(key)
        wait = seconds_left(entry.load(), time.time()) if entry is not None else None
        if entry is None or wait is None or wait > 0:
            return wait
        await client.delete(JOBS, entry, policy="Foreground")
        return None

    return Controller("ttl-after-finished-controller", sync, wakes={JOBS: concerns})


def seconds_left(job: Object, now: float) -> float | None:
    """Seconds until the Job is deleted; None if it is not finished or has no TTL."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None or job["metadata"].get("deletionTimestamp"):
        return None
    for row in (job.get("status") or {}).get("conditions") or ():
        if row["type"] in ("Complete", "Failed") and row["status"] == "True":
            left: float = parse_time(row["lastTransitionTime"]).timestamp() + ttl - now
            return max(left, 0.0)
    return None
