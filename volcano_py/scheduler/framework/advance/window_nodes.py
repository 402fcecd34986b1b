"""Which nodes a Reservation has. Not in Volcano.

It has all nodes that it names, or as many of them as `nodeCount` and `resources` require. These are chosen once, first
those on which nothing is expected to run at its start, and stay while they exist; a node that is gone is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.advance.windows import ReservedWindow
from volcano_py.scheduler.model.nodes.node_table import NodeTable

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def nodes_of(
    window: ReservedWindow, table: NodeTable, allocatable: Floats, taken: Bools, until: Floats, before: Sequence[str]
) -> tuple[list[int], str]:
    """The columns of its nodes, and what is wrong with them (empty: nothing).

    `taken`: the nodes of earlier Reservations at the same time. `until`: when all that runs on a node is expected to
    end. `before`: the nodes that it had.
    """
    named = [i for i, node in enumerate(table.objects) if window.names(table.names[i], node.metadata.labels or {})]
    if not window.counts:
        missing = sorted(set(window.spec.nodes or ()) - set(table.names))
        return named, _no_such(missing) if missing else "" if named else "no node has the labels of spec.nodeSelector"
    lacking = _Lacking(window, table, allocatable)
    kept = {table.index[name] for name in before if name in table.index}
    order = sorted(
        (i for i in named if not taken[i]),
        key=lambda i: (
            i not in kept,
            bool(table.objects[i].spec.unschedulable),
            until[i] > window.start,
            table.names[i],
        ),
    )
    chosen = [i for i in order if lacking.take(i)]
    return sorted(chosen, key=table.names.__getitem__), lacking.text(len(chosen))


class _Lacking:
    """How many nodes, and of which resources how much, a Reservation still needs."""

    def __init__(self, window: ReservedWindow, table: NodeTable, allocatable: Floats) -> None:
        self._nodes = window.spec.node_count or 0
        self._wanted = self._nodes
        self._allocatable = allocatable
        self._amounts = {name: window.amounts[name] for name in window.amounts.names() if window.amounts[name] > 0}
        self._rows = table.rows

    def take(self, node: int) -> bool:
        """Whether a node is needed; it is then counted."""
        has = {
            name: amount
            for name in self._amounts
            if name in self._rows and (amount := float(self._allocatable[self._rows[name], node])) > 0
        }
        if self._nodes <= 0 and not has:
            return False
        self._nodes -= 1
        for name, amount in has.items():
            self._amounts[name] -= amount
            if self._amounts[name] <= 0:
                del self._amounts[name]
        return True

    def text(self, found: int) -> str:
        if self._nodes > 0:
            return f"only {found} of {self._wanted} nodes can be reserved"
        if self._amounts:
            return f"the nodes that can be reserved have too little {', '.join(sorted(self._amounts))}"
        return ""


def _no_such(missing: Sequence[str]) -> str:
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return f"spec.nodes: node {', '.join(missing[:3])}{more} does not exist"
