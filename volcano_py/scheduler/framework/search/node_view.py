"""NodeView: one node as plugins read it in a session. Volcano: NodeInfo.

A view reads the session's columns on access, so it shows what this session has placed and evicted so far.
Amounts have the units of `Resource`: cpu and extended resources in thousandths, memory and storage in bytes, pods as a
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Node, Taint
from volcano_py.scheduler.framework.extension_points.open_session import OpenSession
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource_names import PODS


class Amounts(Mapping[str, float]):
    """Amounts by resource name, read from one column; a resource that no node has is 0."""

    __slots__ = ("_column", "_rows")

    def __init__(self, rows: Mapping[str, int], column: NDArray[np.float64]) -> None:
        self._rows = rows
        self._column = column

    def __getitem__(self, name: str) -> float:
        row = self._rows.get(name)
        return 0.0 if row is None else self._column.item(row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class NodeView:
    """A read-only view of one node. `index` is its column in the session's arrays.

    A view without `numbers`, as rules with scope STATIC receive it, raises AttributeError for everything that can
    change without the Node object.
    """

    __slots__ = ("_numbers", "_session", "index")

    def __init__(self, session: OpenSession, index: int, numbers: bool = True) -> None:
        self._session = session
        self._numbers = numbers
        self.index = index

    @property
    def object(self) -> Node:
        """The Node object, limited to the fields that the scheduler reads."""
        return self._session.table.objects[self.index]

    @property
    def name(self) -> str:
        return self._session.table.names[self.index]

    @property
    def labels(self) -> Mapping[str, str]:
        return self.object.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.object.metadata.annotations or {}

    @property
    def taints(self) -> list[Taint]:
        return self.object.spec.taints or []

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return bool(self.object.spec.unschedulable)

    @property
    def allocatable(self) -> Amounts:
        """What pods may request on the node."""
        return self._amounts("allocatable")

    @property
    def used(self) -> Amounts:
        """What the pods on the node request."""
        return self._amounts("used")

    @property
    def idle(self) -> Amounts:
        """What is free now; negative on a node whose pods request more than it can hold."""
        return self._amounts("idle")

    @property
    def releasing(self) -> Amounts:
        """What pods request that are being deleted or evicted."""
        return self._amounts("releasing")

    @property
    def pipelined(self) -> Amounts:
        """What the tasks request that are pipelined to this node."""
        return self._amounts("pipelined")

    @property
    def pod_count(self) -> int:
        """How many pods take capacity on the node."""
        return int(self.used[PODS])

    @property
    def pods(self) -> list[Task]:
        """The pods that took capacity on the node when the session opened, the youngest first."""
        self._check("pods")
        return self._session.on_node(self.index)

    def _amounts(self, column: str) -> Amounts:
        self._check(column)
        values: NDArray[np.float64] = getattr(self._session.numbers, column)
        return Amounts(self._session.table.rows, values[:, self.index])

    def _check(self, attribute: str) -> None:
        if not self._numbers:
            raise AttributeError(f"node.{attribute} can change without the Node object; declare scope=LOCAL")

    def __repr__(self) -> str:
        return f"NodeView({self.name})"


class ViewedSession(OpenSession, Protocol):
    """A session that has a view of each node."""

    def node(self, index: int, numbers: bool = True) -> NodeView: ...
