"""What happened to pods, in the order of the API server, and whether any of it should not have."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from volcano_py.api.kinds import POD
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer


class Journal:
    """Every pod event from the first one on. `cpus`: how many pods of 1 cpu a node holds."""

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self.node_of: dict[str, str] = {}
        self.name_of: dict[str, str] = {}
        self._uid_of: dict[str, str] = {}
        self.on_node: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.events = 0

    def saw(self, pod: dict[str, Any]) -> None:
        self.events += 1
        uid, name, node = pod["metadata"]["uid"], pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        if self._uid_of.setdefault(name, uid) != uid:
            self.wrong.append(f"{name} exists a second time")
        self.name_of[uid] = name
        before = self.node_of.get(uid, "")
        if before and node != before:
            self.wrong.append(f"{name} went from {before} to {node}")
        if node and not before:
            self.node_of[uid] = node
            self.on_node[node] += 1
            if self.on_node[node] > self.cpus:
                self.wrong.append(f"{node} is over-allocated by {name}")

    def bound_of(self, gang: str) -> int:
        return sum(1 for uid in self.node_of if self.name_of[uid].startswith(f"{gang}-main-"))


@contextlib.asynccontextmanager
async def journal(client: Client, cpus: int) -> AsyncIterator[Journal]:
    """Keep a journal while the context lasts."""
    kept = Journal(cpus)
    pods: Informer[Any] = Informer(client, POD, dict)
    pods.on(add=kept.saw, update=lambda _, new: kept.saw(new))
    watching = asyncio.create_task(pods.run())
    await pods.synced.wait()
    try:
        yield kept
    finally:
        watching.cancel()


async def api_agrees(client: Client, kept: Journal) -> None:
    """What the API server holds at the end is what the journal says."""
    held = {p["metadata"]["uid"]: p["spec"].get("nodeName", "") for p in await client.list(POD, "default")}
    assert held == kept.node_of
