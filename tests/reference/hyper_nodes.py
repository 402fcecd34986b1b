"""HyperNodes: domains of nodes in a tree. Volcano: HyperNodeInfo, and what a session adds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.reference.kube.selectors import matches

ROOT = "<cluster-top-hypernode>"


@dataclass
class HyperNode:
    name: str
    tier: int
    nodes: set[str] = field(default_factory=set)
    parent: str = ""
    children: list[str] = field(default_factory=list)


class HyperNodes:
    """The tree of one session, with a virtual root."""

    def __init__(self, manifests: list[dict[str, Any]], nodes: dict[str, dict[str, str]]) -> None:
        """`nodes`: labels by name."""
        self.of: dict[str, HyperNode] = {}
        self.tier_of_name: dict[str, int] = {}
        self.ready = True
        """Whether the tree is valid."""
        in_order = sorted(manifests, key=lambda m: m["metadata"]["name"])
        for m in in_order:
            name = m["metadata"]["name"]
            self.of[name] = HyperNode(name, m["spec"]["tier"])
            if m["spec"].get("tierName"):
                self.tier_of_name[m["spec"]["tierName"]] = m["spec"]["tier"]
        for m in in_order:
            own = self.of[m["metadata"]["name"]]
            for member in m["spec"].get("members") or []:
                found = chosen(member, nodes)
                if member["type"] == "Node":
                    own.nodes |= found & set(nodes)
                    continue
                for child in sorted(found & set(self.of)):
                    if self.of[child].parent not in ("", own.name):
                        self.ready = False
                        continue
                    self.of[child].parent = own.name
                    if child not in own.children:
                        own.children.append(child)
        tops = sorted(name for name, h in self.of.items() if not h.parent)
        root = HyperNode(ROOT, max(1, max((h.tier for h in self.of.values()), default=0) + 1))
        for name in tops:
            self._gather(name)
            self.of[name].parent = ROOT
            root.children.append(name)
        root.nodes = set(nodes)
        self.of[ROOT] = root
        self.tiers = sorted({h.tier for h in self.of.values()})

    def _gather(self, name: str) -> set[str]:
        own = self.of[name]
        for child in own.children:
            own.nodes |= self._gather(child)
        return own.nodes

    def ancestors(self, name: str) -> list[str]:
        """The HyperNode itself first, the root last."""
        found = []
        while name:
            found.append(name)
            name = self.of[name].parent
        return found

    def lowest_common(self, new: str, old: str) -> str:
        """If one is missing, the other."""
        if not new or not old:
            return new or old
        of_new = self.ancestors(new)
        return next((a for a in self.ancestors(old) if a in of_new), "")

    def leaf(self, node: str) -> str:
        """The HyperNode of the lowest tier that contains a node, or "". Volcano: FindHyperNodeForNode."""
        return next((h.name for h in self.of_tier(self.tiers[0]) if node in h.nodes), "")

    def of_tier(self, tier: int) -> list[HyperNode]:
        return [h for _, h in sorted(self.of.items()) if h.tier == tier]

    def lowest_holding(self, nodes: list[str]) -> str:
        """The lowest HyperNode that contains all of the nodes."""
        found = [h for h in self.of.values() if nodes and h.nodes >= set(nodes)]
        return min(found, key=lambda h: (h.tier, h.name)).name if found else ""

    def below(self, name: str) -> list[str]:
        """The tree below a HyperNode, itself first."""
        found = [name]
        for each in found:
            found += sorted(self.of[each].children)
        return found


def chosen(member: dict[str, Any], nodes: dict[str, dict[str, str]]) -> set[str]:
    """The names that a member's selector selects; of HyperNodes only exact ones."""
    selector = member.get("selector") or {}
    found = set()
    exact = (selector.get("exactMatch") or {}).get("name")
    if exact:
        found.add(exact)
    if member["type"] == "HyperNode":
        return found
    if selector.get("regexMatch"):
        try:
            pattern = re.compile(selector["regexMatch"]["pattern"])
        except re.error:
            return set()
        found |= {n for n in nodes if pattern.search(n)}
    labels = selector.get("labelMatch")
    if labels and (labels.get("matchLabels") or labels.get("matchExpressions")):
        found |= {n for n, own in nodes.items() if matches(labels, own)}
    return found


@dataclass
class Topology:
    """How close together tasks must be."""

    mode: str
    tier: int | None
    tier_name: str

    @property
    def hard(self) -> bool:
        return self.mode == "hard" and self.tier is not None


def topology_of(spec: dict[str, Any] | None) -> Topology | None:
    if spec is None:
        return None
    return Topology(spec.get("mode") or "hard", spec.get("highestTierAllowed"), spec.get("highestTierName") or "")
