"""HeldNodes: nodes that take no new pods while the cache audit doubts an object that decides their capacity. Not in
Volcano.
"""

from __future__ import annotations

from collections.abc import Mapping


class HeldNodes:
    """Changed by `Cluster.hold` only."""

    __slots__ = ("all_nodes", "generation", "why")

    def __init__(self) -> None:
        self.why: dict[str, str] = {}
        """By node name: the object that is doubted."""
        self.all_nodes = ""
        """The object because of which every node is held; empty: none is."""
        self.generation = 0
        """Incremented when other nodes are held than before."""

    def __bool__(self) -> bool:
        return bool(self.why or self.all_nodes)

    def __contains__(self, node: str) -> bool:
        return bool(self.all_nodes) or node in self.why

    def replace(self, why: Mapping[str, str], all_nodes: str) -> set[str] | None:
        """Hold these nodes from now on. Returns the nodes that are held now and were not before, or the reverse; None:
        possibly all of them."""
        changed = None if bool(all_nodes) != bool(self.all_nodes) else self.why.keys() ^ why.keys()
        if changed is None or changed:
            self.generation += 1
        self.why, self.all_nodes = dict(why), all_nodes
        return changed
