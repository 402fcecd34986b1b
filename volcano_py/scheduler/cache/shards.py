"""The nodes of this scheduler when NodeShards divide them. Volcano: the shard coordinator.

Its nodes are spec.nodesDesired of its NodeShard, without those that another shard still uses. The nodes in use, and the
difference from nodesDesired, are written to the status of its NodeShard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from volcano_py.api import kinds
from volcano_py.api.shard import NodeShard
from volcano_py.kube import Client, Informer, KubeError
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.framework.session import Shard

log = logging.getLogger(__name__)


class Shards:
    """`shard` applies from the next cycle on: it is empty until this scheduler's NodeShard has been read."""

    def __init__(
        self,
        client: Client,
        name: str,
        hard: bool,
        on_change: Callable[[], None],
        may_write: Callable[[], bool],
    ) -> None:
        self.shard = Shard(frozenset(), hard)
        self.informer: Informer[NodeShard] = Informer(client, kinds.NODESHARD, NodeShard)
        self._client = client
        self._name = name
        self._hard = hard
        self._on_change = on_change
        self._may_write = may_write
        self._stale = asyncio.Event()
        self._missing_reported = False
        self.informer.on(lambda new: self._update(), lambda old, new: self._update(), lambda last: self._update())

    async def run(self) -> None:
        """Watch, and keep the status current, until cancelled. Raises the error that ended one of the two."""
        await run_all({"informer nodeshards": self.informer.run(), "shard status": self._keep_status()})

    async def _keep_status(self) -> None:
        await self.informer.synced.wait()
        self._update()
        while True:
            await self._stale.wait()
            self._stale.clear()
            if not await self._write():
                await asyncio.sleep(1.0)
                self._stale.set()

    def _update(self) -> None:
        own = self.informer.store.get(self._name)
        if own is None:
            if self.informer.synced.is_set() and not self._missing_reported:
                self._missing_reported = True
                log.error(
                    "NodeShard %s not found; create it, or change --scheduler-sharding-name; keeping the nodes in use",
                    self._name,
                )
            return
        self._missing_reported = False
        nodes = in_use(own, [s for name, s in self.informer.store.items() if name != self._name])
        if self.shard.nodes != nodes:
            self.shard = Shard(nodes, self._hard)
            self._on_change()
        self._stale.set()

    async def _write(self) -> bool:
        own = self.informer.store.get(self._name)
        if own is None:
            return True
        status = status_of(own, self.shard.nodes)
        current = own.status
        same = all(
            set(getattr(current, attribute) or ()) == set(status[key])
            for key, attribute in (
                ("nodesInUse", "nodes_in_use"),
                ("nodesToRemove", "nodes_to_remove"),
                ("nodesToAdd", "nodes_to_add"),
            )
        )
        if same:
            return True
        if not self._may_write():
            return False
        # The status depends on this version: if it has changed since, the watch returns the newer one.
        body = {"metadata": {"resourceVersion": own.metadata.resource_version}, "status": status}
        try:
            await self._client.patch(kinds.NODESHARD, self._name, body, subresource="status")
        except KubeError as error:
            log.warning("the status of NodeShard %s cannot be written yet, retrying: %s", self._name, error)
            return False
        return True


def in_use(own: NodeShard, others: list[NodeShard]) -> frozenset[str]:
    """The nodes to use: desired by this shard, and not used by another one."""
    nodes = set(own.spec.nodes_desired or ())
    for other in others:
        nodes.difference_update(other.status.nodes_in_use or ())
    return frozenset(nodes)


def status_of(own: NodeShard, nodes: frozenset[str]) -> dict[str, Any]:
    """The status of this shard while `nodes` are in use."""
    desired = set(own.spec.nodes_desired or ())
    return {
        "nodesInUse": sorted(nodes),
        "nodesToRemove": sorted(nodes - desired),
        "nodesToAdd": sorted(desired - nodes),
    }
