"""Nodes that are divided between two schedulers, in an eighth of the runs, and what must hold of that."""

from __future__ import annotations

from typing import Any

from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer

Object = dict[str, Any]

KIND = "nodeshards.shard.volcano.sh"
PATH = "/apis/shard.volcano.sh/v1alpha1/nodeshards"
OWN, OTHER = "volcano", "agent-scheduler"


class Shards(Part):
    """The shards of a run. The other scheduler is simulated."""

    name = "shards"
    share = 0.12

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)

    async def follow(self) -> None:
        """The other scheduler takes the nodes of its shard that the product's scheduler does not use."""
        shards = self._server.objects(KIND)
        if not self.used or OTHER not in shards:
            return
        nodes = sorted(set(desired(shards[OTHER])) - set(in_use(shards.get(OWN))))
        if nodes != in_use(shards[OTHER]):
            await self._call("PATCH", f"{PATH}/{OTHER}/status", {"status": {"nodesInUse": nodes}}, "rival")


def desired(shard: Object | None) -> list[str]:
    """The nodes that the controller has assigned to a shard."""
    return ((shard or {}).get("spec") or {}).get("nodesDesired") or []


def in_use(shard: Object | None) -> list[str]:
    """The nodes that the scheduler of a shard uses."""
    return ((shard or {}).get("status") or {}).get("nodesInUse") or []


def own_nodes(shards: dict[str, Object]) -> set[str]:
    """The nodes that the product's scheduler may use."""
    return set(desired(shards.get(OWN))) - set(in_use(shards.get(OTHER)))
