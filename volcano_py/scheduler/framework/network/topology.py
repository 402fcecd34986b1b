"""Topology: the forest of HyperNodes in one session. Volcano: RealNodesList, HyperNodesTiers,
GetAncestors, GetLCAHyperNode, recovery of allocated HyperNodes.

`ROOT` is above all HyperNodes and stands for the whole cluster, so that every two of them have a common ancestor.
Nodes are columns of the session's table.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.nodes.hyper_nodes import HyperNodeInfo, HyperNodes
from volcano_py.scheduler.model.nodes.node_table import NodeTable

ROOT = "<cluster-top-hypernode>"
"""The HyperNode of the whole cluster; the name is Volcano's."""


class HyperNodeTree:
    """HyperNodes by name, with their nodes' columns, and their ancestors."""

    def __init__(self, hyper_nodes: HyperNodes, table: NodeTable) -> None:
        self.ready = hyper_nodes.ready
        self.tier_of_name = hyper_nodes.tier_of_name
        self.infos: dict[str, HyperNodeInfo] = {}
        tiers = {info.tier for info in hyper_nodes.infos.values()}
        self.root_tier = max(1, max(tiers, default=0) + 1)
        self.tiers: list[int] = sorted({*tiers, self.root_tier})
        """Ascending; the last is the tier of the whole cluster."""
        top = []
        claimed = _claimed(hyper_nodes)
        for name, info in hyper_nodes.infos.items():
            parent = info.parent or claimed.get(name, "")
            if not parent:
                top.append(name)
            self.infos[name] = info._replace(parent=parent or ROOT)
        self.infos[ROOT] = HyperNodeInfo(ROOT, self.root_tier, "", tuple(top), table.name_set())
        self._table = table
        self._columns: dict[str, NDArray[np.intp]] = {}
        self._masks: dict[str, NDArray[np.bool_]] = {}
        self._lowest: list[str] | None = None
        self._within: dict[tuple[str, str], list[str]] = {}
        self._by_label: dict[str, tuple[list[str], NDArray[np.intp]]] = {}

    @property
    def flat(self) -> bool:
        """Whether there are no HyperNodes except the root."""
        return len(self.infos) == 1

    def of_tier(self, tier: int) -> list[str]:
        """The HyperNodes of a tier, by name."""
        return sorted(name for name, info in self.infos.items() if info.tier == tier)

    def by_label(self, key: str) -> tuple[list[str], NDArray[np.intp]]:
        """The domains that the values of a node label form, by name, and the index of each node's; −1: it has none.

        They have the name `key=value` and are not part of the forest; `columns` and `mask` accept them afterwards.
        """
        found = self._by_label.get(key)
        if found is None:
            values = [(node.metadata.labels or {}).get(key) for node in self._table.objects]
            index = {value: i for i, value in enumerate(sorted({v for v in values if v is not None}))}
            of_node = np.array([-1 if v is None else index[v] for v in values], dtype=np.intp)
            names = [f"{key}={value}" for value in index]
            for i, name in enumerate(names):
                self._columns[name] = np.flatnonzero(of_node == i)
            found = self._by_label[key] = (names, of_node)
        return found

    def within(self, outer: str, key: str) -> list[str]:
        """The domains of a node label inside a HyperNode or a domain, by name; as with `by_label`."""
        names, _ = self.by_label(key)
        if outer == ROOT:
            return names
        found = self._within.get((outer, key))
        if found is None:
            found, inside = [], self.mask(outer)
            for name in names:
                columns = self.columns(name)
                columns = columns[inside[columns]]
                if len(columns):
                    found.append(f"{outer}/{name}")
                    self._columns[found[-1]] = columns
            self._within[outer, key] = found
        return found

    def has(self, name: str) -> bool:
        """Whether the HyperNode exists, or the domain of a label that a job uses."""
        return name in self.infos or name in self._columns

    def tier(self, name: str) -> int:
        return self.infos[name].tier

    def columns(self, name: str) -> NDArray[np.intp]:
        """The existing nodes of a HyperNode, in the order of the table."""
        found = self._columns.get(name)
        if found is None:
            if name == ROOT:
                found = np.arange(len(self._table.names), dtype=np.intp)
            else:
                index = self._table.index
                there = sorted(index[n] for n in self.infos[name].nodes if n in index)
                found = np.array(there, dtype=np.intp)
            self._columns[name] = found
        return found

    def mask(self, name: str) -> NDArray[np.bool_]:
        """The same as one flag per node."""
        found = self._masks.get(name)
        if found is None:
            found = self._masks[name] = np.zeros(len(self._table.names), dtype=bool)
            found[self.columns(name)] = True
        return found

    def ancestors(self, name: str) -> list[str]:
        """The HyperNode itself, then its ancestors up to the root."""
        chain: list[str] = []
        while name and name not in chain:
            chain.append(name)
            name = self.infos[name].parent if name in self.infos else ""
        return chain

    def lowest_common(self, new: str, old: str) -> str:
        """The lowest HyperNode that contains both; with "" the other one, and "" if there is none."""
        if not new or not old:
            return new or old
        above = set(self.ancestors(new))
        return next((name for name in self.ancestors(old) if name in above), "")

    def leaf(self, node: int) -> str:
        """The HyperNode of the lowest tier that contains a node; "" if no HyperNode of that tier does."""
        if self._lowest is None:
            self._lowest = [""] * len(self._table.names)
            for name in reversed(self.of_tier(self.tiers[0])):
                for column in self.columns(name).tolist():
                    self._lowest[column] = name
        return self._lowest[node]

    def around(self, nodes: Iterable[int]) -> str:
        """The lowest HyperNode that contains all of these nodes; "" if there are no nodes."""
        here = np.array(sorted(set(nodes)), dtype=np.intp)
        if not len(here):
            return ""
        names = [name for name in self.infos if self.mask(name)[here].all()]
        return min(names, key=lambda name: (self.tier(name), name), default="")

    def below(self, name: str) -> list[str]:
        """The HyperNode and all below it, in descending order of tiers."""
        order = [name]
        for each in order:
            order += self.infos[each].children
        return order


def topology_of(cluster: Cluster) -> HyperNodeTree:
    """The current topology of the cluster; built again when HyperNodes or nodes have changed."""
    cache, key = cluster.rule_cache(), ("topology", 0)
    found: tuple[HyperNodes, HyperNodeTree] | None = cache.get(key)
    if found is None or found[0] is not cluster.hyper_nodes:
        found = cache[key] = (cluster.hyper_nodes, HyperNodeTree(cluster.hyper_nodes, cluster.nodes))
    return found[1]


def _claimed(hyper_nodes: HyperNodes) -> dict[str, str]:
    """Children whose parent is a HyperNode of a higher tier, also if only the parent specifies the relation."""
    tiers = {name: info.tier for name, info in hyper_nodes.infos.items()}
    return {
        child: h.name for h in hyper_nodes.infos.values() for child in h.children if h.tier > tiers.get(child, h.tier)
    }
