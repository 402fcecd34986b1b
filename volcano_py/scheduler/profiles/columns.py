"""Columns: the nodes' amounts as arrays, for rules that evaluate all nodes at once.

Kubernetes has no such form: it evaluates one node after another. Columns are in the order in which nodes are tried, and
are created again when that order changes. Otherwise a change of a node is a write in each array and an entry in the
log, and `generation` increases when a Node object changes in more than its amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.rules.arrays import Indices, Ints
from volcano_py.scheduler.rules.domains import Domains, domains
from volcano_py.scheduler.rules.taints import NodeTaints, node_taints

Array = TypeVar("Array", bound=NDArray[Any])

_MOST = 2**56
"""Larger amounts count as this one, so that products with a percentage fit into 64 bits."""


_MOST_COUNTS = 64
"""The number of different counts that are kept."""


class Columns:
    """Arrays over all nodes. Amounts as in NodeInfo."""

    def __init__(self, infos: Sequence[NodeInfo], model: Model) -> None:
        count = len(infos)
        self.infos = list(infos)
        self.index = {info.name: i for i, info in enumerate(infos)}
        self.log: list[int] = []
        """Columns that have changed, in order."""
        self.pods: Ints = np.zeros(count, dtype=np.int64)
        """Number of pods."""
        self.non_zero_cpu: Ints = np.zeros(count, dtype=np.int64)
        self.non_zero_memory: Ints = np.zeros(count, dtype=np.int64)
        self._allocatable: dict[str, Ints] = {}
        self._requested: dict[str, Ints] = {}
        self.generation = model.nodes.generation
        self.model = model
        """For rules about its nodes; `of_model` sorts their results."""
        in_model = model.nodes.index
        self._of_model: Indices = np.array([in_model[info.name] for info in infos], dtype=np.intp)
        self._at_model: Indices | None = None
        self._domains: dict[str, Domains] = {}
        self._counts: dict[Hashable, tuple[Ints, int]] = {}
        self._of_node: list[object] = [None] * count
        """The allocatable amounts that are written, of each node: a pod changes only what is requested."""
        for i, info in enumerate(infos):
            self._write(i, info)

    def __len__(self) -> int:
        return len(self.infos)

    def update(self, info: NodeInfo) -> None:
        """Update the amounts and pods of a node."""
        i = self.index[info.name]
        self._write(i, info)
        self.log.append(i)

    def renew(self) -> None:
        """Record that Node objects have changed in more than their amounts."""
        self.generation = self.model.nodes.generation
        self._domains.clear()

    def touch(self, node: str) -> None:
        """Record another change of a node that rules depend on."""
        i = self.index.get(node)
        if i is not None:
            self.log.append(i)

    def allocatable(self, resource: str) -> Ints:
        return _row(self._allocatable, resource, len(self))

    def requested(self, resource: str) -> Ints:
        return _row(self._requested, resource, len(self))

    def of_model(self, values: Array) -> Array:
        """Values by column of the model's nodes, in the order of these columns."""
        found: Array = values[self._of_model]  # type: ignore[assignment]
        return found

    def to_model(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values in the order of these columns, by column of the model's nodes."""
        found: NDArray[Any] = np.zeros(len(self.model.nodes), dtype=values.dtype)
        found[self._of_model] = values
        return found

    def at_model(self, nodes: Indices) -> Indices:
        """Columns of the model's nodes as these columns."""
        if self._at_model is None:
            self._at_model = np.empty(len(self._of_model), dtype=np.intp)
            self._at_model[self._of_model] = np.arange(len(self._of_model))
        at: Indices = self._at_model[nodes]
        return at

    def model_column(self, i: int) -> int:
        """The model's column of a node."""
        return int(self._of_model[i])

    @property
    def taints(self) -> NodeTaints:
        """The taints of the model's nodes."""
        return node_taints(self.model)

    def domains(self, key: str) -> Domains:
        """The values of a label."""
        known = self._domains.get(key)
        if known is None:
            known = self._domains[key] = domains(self.model, key).in_order(self._of_model)
        return known

    def count(self, what: Hashable, count: Callable[[NodeInfo], int]) -> Ints:
        """A count over each node's pods, with the key `what`; computed again for nodes that change."""
        known = self._counts.get(what)
        if known is None:
            if len(self._counts) >= _MOST_COUNTS:
                del self._counts[next(iter(self._counts))]
            numbers: Ints = np.fromiter((count(info) for info in self.infos), dtype=np.int64, count=len(self))
        else:
            numbers, seen = known
            for i in set(self.log[seen:]):
                numbers[i] = count(self.infos[i])
        self._counts[what] = numbers, len(self.log)
        return numbers

    def _write(self, i: int, info: NodeInfo) -> None:
        self.pods[i] = len(info.pods)
        self.non_zero_cpu[i] = min(info.non_zero_cpu, _MOST)
        self.non_zero_memory[i] = min(info.non_zero_memory, _MOST)
        _write_row(self._requested, i, info.requested, len(self.infos))
        if self._of_node[i] is not info.allocatable:
            self._of_node[i] = info.allocatable
            _write_row(self._allocatable, i, info.allocatable, len(self.infos))


class SomeColumns:
    """The same arrays for some of the nodes."""

    def __init__(self, columns: Columns, nodes: Indices) -> None:
        self._columns = columns
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def infos(self) -> Sequence[NodeInfo]:
        return NodesAt(self._columns.infos, lambda: self._nodes, len(self._nodes))

    @property
    def pods(self) -> Ints:
        return self._columns.pods[self._nodes]

    @property
    def non_zero_cpu(self) -> Ints:
        return self._columns.non_zero_cpu[self._nodes]

    @property
    def non_zero_memory(self) -> Ints:
        return self._columns.non_zero_memory[self._nodes]

    def allocatable(self, resource: str) -> Ints:
        return self._columns.allocatable(resource)[self._nodes]

    def requested(self, resource: str) -> Ints:
        return self._columns.requested(resource)[self._nodes]


AnyColumns = Columns | SomeColumns
"""All nodes or some: the input of a LOCAL rule."""


class NodesAt(Sequence[NodeInfo]):
    """Some of a list of nodes, accessed only when they are read."""

    def __init__(self, infos: Sequence[NodeInfo], nodes: Callable[[], Indices], count: int) -> None:
        self._infos = infos
        self._nodes = nodes
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[NodeInfo]:
        infos = self._infos
        return (infos[i] for i in self._nodes().tolist())

    @overload
    def __getitem__(self, i: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, i: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        if isinstance(i, slice):
            return [self._infos[j] for j in self._nodes()[i].tolist()]
        return self._infos[int(self._nodes()[i])]


def _write_row(rows: dict[str, Ints], i: int, amounts: Mapping[str, int], count: int) -> None:
    """Write the amounts of a node."""
    for resource, row in rows.items():
        row[i] = min(amounts.get(resource, 0), _MOST)
    for resource in amounts.keys() - rows.keys():
        row = rows[resource] = np.zeros(count, dtype=np.int64)
        row[i] = min(amounts[resource], _MOST)


def _row(rows: dict[str, Ints], resource: str, count: int) -> Ints:
    row = rows.get(resource)
    if row is None:
        row = rows[resource] = np.zeros(count, dtype=np.int64)
    return row
