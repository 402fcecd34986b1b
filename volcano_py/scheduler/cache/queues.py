"""The queues that must exist: `root` and the default queue. Volcano: newDefaultAndRootQueue, which tries 60 times, a
second apart."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from volcano_py.api import kinds
from volcano_py.kube import AlreadyExists, Backoff, Client, KubeError, NotFound, scan
from volcano_py.kube.errors import InvalidResponse
from volcano_py.kube.remedies import remedy

log = logging.getLogger(__name__)

ATTEMPTS = 15


async def ensure_queues(client: Client, default_queue: str, pause: float = 1.0) -> None:
    """Create the missing queues. Tries 15 times, about a minute, and then raises the KubeError. `pause`: seconds before
    the second attempt; later ones are up to five times as long."""
    await _ensure(client, "root", {"reclaimable": False, "weight": 1}, pause)
    await _ensure(client, default_queue, {"reclaimable": True, "weight": 1}, pause)


async def _ensure(client: Client, name: str, spec: dict[str, Any], pause: float) -> None:
    backoff = Backoff(pause, 5 * pause)
    while True:
        try:
            try:
                await client.get(kinds.QUEUE, name)
            except NotFound:
                await client.create(kinds.QUEUE, {"metadata": {"name": name}, "spec": spec})
                log.info("created queue %s", name)
            return
        except AlreadyExists:
            return
        except InvalidResponse as error:
            if scan.texts(error.body, "metadata").get("name") == name:
                # It exists, but cannot be decoded: the cache reports it.
                return
            await _retry(name, error, backoff)
        except KubeError as error:
            await _retry(name, error, backoff)


async def _retry(name: str, error: KubeError, backoff: Backoff) -> None:
    pause, attempts = backoff.next(), backoff.failures
    what = remedy(error, kinds.QUEUE, ("get", "create"))
    if attempts == ATTEMPTS:
        raise KubeError(f"{error}; {what}" if what else str(error)) from error
    if attempts in (1, 4):
        log.warning("queue %s cannot be created yet, retrying: %s%s", name, error, f"; {what}" if what else "")
    await asyncio.sleep(pause)
