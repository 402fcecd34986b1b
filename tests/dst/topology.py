"""HyperNodes that a controller creates from the zones of nodes in a quarter of the runs, and what must hold of them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer

SOURCE = "volcano.sh/network-topology-source"
CONFIGURATION = """\
networkTopologyDiscovery:
- source: label
  enabled: true
  config: {networkTopologyTypes: {zones: [{nodeLabel: zone}, {nodeLabel: kubernetes.io/hostname}]}}
"""


class Topology(Part):
    """The discovery of a run."""

    name = "topology"
    share = 0.25

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)

    async def begin(self) -> None:
        """The configuration of the controllers."""
        if self.used:
            body = {"metadata": {"name": "volcano-controller-configmap"},
                    "data": {"volcano-controller.conf": CONFIGURATION}}  # fmt: skip
            await self._call("POST", "/api/v1/namespaces/volcano-system/configmaps", body, "user")

    def left(self) -> list[str]:
        """What is wrong with the HyperNodes at the end: each zone has one with its nodes."""
        if not self.used:
            return []
        zones: dict[str, set[str]] = defaultdict(set)
        for name, node in self._server.objects("nodes").items():
            zones[node["metadata"]["labels"]["zone"]].add(name)
        found = [
            f"HyperNode {name} exists, and zone {zone} has no nodes"
            for zone, name in self._discovered()
            if zone not in zones
        ]
        for zone, nodes in zones.items():
            those = [name for of, name in self._discovered() if of == zone]
            if len(those) != 1:
                found.append(f"zone {zone} has the HyperNodes {those}")
                continue
            one = self._server.objects("hypernodes.topology.volcano.sh")[those[0]]
            if (members := members_of(one)) != nodes:
                found.append(f"HyperNode {those[0]} has {sorted(members)} of {sorted(nodes)}")
            elif (count := (one.get("status") or {}).get("nodeCount")) != len(nodes):
                found.append(f"HyperNode {those[0]} counts {count} of {len(nodes)} nodes")
        return found

    def _discovered(self) -> list[tuple[str, str]]:
        """Zone and name of each HyperNode of the controller."""
        return [
            (one["metadata"]["labels"].get("zone", ""), name)
            for name, one in self._server.objects("hypernodes.topology.volcano.sh").items()
            if (one["metadata"].get("labels") or {}).get(SOURCE) == "label"
        ]


def members_of(hyper_node: dict[str, Any]) -> set[str]:
    """The nodes that a HyperNode names."""
    members = hyper_node["spec"].get("members") or ()
    return {member["selector"]["exactMatch"]["name"] for member in members}
