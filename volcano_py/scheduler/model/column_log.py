"""ColumnLog: which node columns changed, for readers that store how far they have read. Not in Volcano."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FEW = 16
"""Up to this number of changes, or one for each 16 nodes, are looked up in their order; more are looked up by node."""


class ColumnLog:
    """Changes are numbered; a reader stores `position` and later reads the changes `since` then."""

    __slots__ = ("_changed", "_last")

    def __init__(self, nodes: int) -> None:
        self._changed: list[int] = []
        self._last: NDArray[np.int64] = np.full(nodes, -1, dtype=np.int64)
        """The number of each column's last change."""

    @property
    def position(self) -> int:
        return len(self._changed)

    def add(self, node: int) -> None:
        """Record a change of a column."""
        self._last[node] = len(self._changed)
        self._changed.append(node)

    def add_all(self, nodes: NDArray[np.intp]) -> None:
        """Record one change of each of several columns."""
        self._last[nodes] = np.arange(len(self._changed), len(self._changed) + len(nodes))
        self._changed += nodes.tolist()

    def since(self, position: int) -> list[int] | NDArray[np.intp]:
        """The columns that changed after a position, each once, in no order; a list if there are few."""
        count = len(self._changed) - position
        if count == 1:
            return [self._changed[-1]]
        if count <= max(_FEW, len(self._last) // 16):
            return list(set(self._changed[position:]))
        return (self._last >= position).nonzero()[0]
