"""NodeTable: capacity and usage of all nodes, as columns. Volcano: NodeInfo, and kube-scheduler's NodeInfo.

Arrays are float64 [resources x nodes]: one resource over all nodes is contiguous. Resource rows are only appended; when
a node is removed, the last column replaces its column. `NodeNumbers` holds only the numbers; a session works on a copy
of them, so that only events change the table itself.

idle        allocatable − requests of all tasks except pipelined ones (may be negative)
used        requests of all tasks except pipelined ones, including releasing ones
releasing   requests of tasks that are being evicted or deleted
pipelined   requests of tasks that wait on the node for capacity that is being released (sessions only)
foreign     requests of tasks that belong to no job: pods of other schedulers
kube_*      what kube-scheduler's own rules count: every pod on the node that is not finished
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Node
from volcano_py.scheduler.model.column_log import ColumnLog
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY, PODS

Floats = NDArray[np.float64]

_KEPT_BYTES = 256 * 2**20
"""The memory for arrays over all nodes that are kept for classes of pods."""


def arrays_kept(nodes: int) -> int:
    """How many arrays of 8 bytes per node are kept for classes of pods: there can be as many classes as pods."""
    return max(64, min(_KEPT_BYTES // (8 * max(nodes, 1)), 2**16))


def drop_oldest(kept: dict[Any, Any], most: int) -> None:
    """Remove the oldest entries, so that there are fewer than `most`."""
    while len(kept) >= most:
        del kept[next(iter(kept))]


_DENSE = ("allocatable", "releasing", "pipelined", "idle", "used", "kube_requested")
_FLAT = ("kube_pods", "max_pods")
_PAIRS = ("kube_nonzero", "kube_capacity")
_ALL_COLUMNS = (*_DENSE, *_PAIRS, *_FLAT, "foreign")
_IN_ORDER = (*_DENSE, "kube_nonzero", "kube_pods", "kube_capacity", "max_pods")
"""The arrays that a pod adds to follow each other: it is added in one operation."""


@cache
def _layout(rows: int) -> tuple[int, dict[str, slice | int]]:
    """The layout of the columns in one matrix over all nodes: its number of rows, and the rows of each array."""
    where: dict[str, slice | int] = {}
    at = 0
    for name in _IN_ORDER:
        count = rows if name in _DENSE else 2 if name in _PAIRS else 1
        where[name] = at if name in _FLAT else slice(at, at + count)
        at += count
    return at, where


class PodAmounts(NamedTuple):
    """What one pod adds to the columns of its node, in the form of `held` and `kube` of `NodeNumbers`."""

    held: Floats
    kube: Floats


class NodeNumbers:
    """The columns of all nodes, and the log of columns that changed since the copy was made."""

    __slots__ = (*_ALL_COLUMNS, "future_differs", "held", "kube", "log", "matrix", "where")

    allocatable: Floats
    idle: Floats
    used: Floats
    releasing: Floats
    pipelined: Floats
    kube_requested: Floats
    """Requests of all pods, in the units of Resource: [resources x nodes]."""
    foreign: Floats
    """Of those, requests of pods of other schedulers. A session does not change them: it shares the table's array."""
    max_pods: Floats
    """Allocatable `pods`; 0 on a node that does not set it."""
    kube_pods: Floats
    """Number of pods on the node."""
    kube_nonzero: Floats
    """Non-zero requests, [2 x nodes]: whole milli-cpu and bytes with kube-scheduler's defaults."""
    kube_capacity: Floats
    """Allocatable cpu and memory without what is oversubscribed, which kube-scheduler does not count: [2 x nodes]."""
    matrix: Floats
    """All arrays except `foreign` in one matrix, so that those of some nodes are gathered together."""
    where: dict[str, slice | int]
    """The rows of each array in the matrix."""
    held: Floats
    """The rows of the matrix that idle and used are."""
    kube: Floats
    """The rows of the matrix that kube_requested, kube_nonzero and kube_pods are."""
    log: ColumnLog
    future_differs: bool
    """Whether some task is releasing or pipelined, so that idle and future capacity differ."""

    def __init__(self, rows: int, nodes: int, zeros: bool = True) -> None:
        height, self.where = _layout(rows)
        self.matrix = np.zeros((height, nodes)) if zeros else np.empty((height, nodes))
        for name, at in self.where.items():
            setattr(self, name, self.matrix[at])
        self._set_parts()
        self.foreign = np.zeros((rows, nodes))
        self.log = ColumnLog()
        self.future_differs = False

    def copy(self, rows: int, nodes: int) -> NodeNumbers:
        """A copy of the used part of the columns."""
        other = NodeNumbers(rows, nodes, zeros=False)
        for name, at in other.where.items():
            own = other.matrix[at]
            own[:] = getattr(self, name)[: len(own), :nodes] if own.ndim == 2 else getattr(self, name)[:nodes]
        other.foreign = self.foreign[:rows, :nodes]
        other.future_differs = bool(other.releasing.any())
        return other

    def _set_parts(self) -> None:
        height = len(self.idle)
        first = _IN_ORDER.index("idle") * height
        self.held = self.matrix[first : first + 2 * height]
        self.kube = self.matrix[first + 2 * height : first + 3 * height + 3]

    def usage(self, request: Floats, nonzero: Floats) -> PodAmounts:
        """What a pod with this request adds."""
        one = NodeNumbers(self.idle.shape[0], 1)
        rows = len(request)
        one.idle[:rows, 0] = -request
        one.used[:rows, 0] = one.kube_requested[:rows, 0] = request
        one.kube_nonzero[:, 0] = nonzero
        one.kube_pods[0] = 1
        return PodAmounts(one.held[:, 0].copy(), one.kube[:, 0].copy())

    def future_idle(self) -> Floats:
        """What will be free after releasing tasks are deleted and pipelined ones have started: [resources x nodes]."""
        return self.idle + self.releasing - self.pipelined


class NodeTable:
    """All nodes that have a Node object, with their numbers."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.objects: list[Node] = []
        self.rows: dict[str, int] = {CPU: 0, MEMORY: 1, PODS: 2}
        self.numbers = NodeNumbers(8, 64)
        self.generation = 0
        """Incremented when nodes are added, removed or moved, or change in anything other than amounts: also when one
        has a resource that it did not have before, as when a device plugin has started, or no longer."""
        self.names_generation = 0
        """Incremented when nodes are added, removed or moved."""
        self.spec_generation = 0
        """The same, and when taints, `unschedulable` or images change: most updates change annotations only."""
        self.total_generation = 0
        """Incremented when any node's allocatable changes."""
        self._keys: list[frozenset[str]] = []
        self._has: list[frozenset[str]] = []
        """The resources of which each node has more than nothing."""
        self._bare: tuple[int, list[int]] = (-1, [])
        self._total: tuple[int, Resource] = (-1, Resource())
        self._name_set: tuple[int, frozenset[str]] = (-1, frozenset())

    def __len__(self) -> int:
        return len(self.names)

    def row(self, resource: str) -> int:
        """The row of a resource, appended if it is new."""
        i = self.rows.get(resource)
        if i is None:
            i = self.rows[resource] = len(self.rows)
            if i >= self.numbers.idle.shape[0]:
                self._grow(i * 2, self.numbers.idle.shape[1])
        return i

    def put(self, node: Node, allocatable: Resource, extra: tuple[float, float] = (0.0, 0.0)) -> int:
        """Add a node, or replace its object and allocatable; returns its column. Usage is kept.

        `extra`: milli-cpu and bytes that are oversubscribed.
        """
        i = self.index.get(node.metadata.name)
        if i is None:
            i = len(self.names)
            if i >= self.numbers.idle.shape[1]:
                self._grow(self.numbers.idle.shape[0], i * 2)
            self.names.append(node.metadata.name)
            self.index[node.metadata.name] = i
            self.objects.append(node)
            self._keys.append(frozenset())
            self._has.append(frozenset())
            self._moved()
            for name in _ALL_COLUMNS:
                getattr(self.numbers, name)[..., i] = 0
        elif _static(self.objects[i]) != _static(node):
            self.generation += 1
            self.spec_generation += _spec(self.objects[i]) != _spec(node)
        self.objects[i] = node
        amounts = allocatable.as_dict()
        for name in amounts:
            self.row(name)
        have = np.zeros(self.numbers.idle.shape[0])
        for name, amount in amounts.items():
            have[self.rows[name]] = amount
        n = self.numbers
        n.kube_capacity[:, i] = have[:2]
        have[:2] += extra
        if not np.array_equal(have, n.allocatable[:, i]):
            n.allocatable[:, i] = have
            n.idle[:, i] = have - n.used[:, i]
            self.total_generation += 1
        n.max_pods[i] = allocatable.max_task_num
        if amounts.keys() != self._keys[i]:
            self._keys[i] = frozenset(amounts)
            self.total_generation += 1
        has = frozenset([name for name, amount in amounts.items() if amount])
        if has != self._has[i]:
            self._has[i] = has
            self.generation += 1
        return i

    def drop(self, name: str) -> tuple[int, int] | None:
        """Remove a node. Returns (its column, the column that moved there) or None if it is unknown."""
        i = self.index.pop(name, None)
        if i is None:
            return None
        last = len(self.names) - 1
        if i != last:
            self.names[i] = self.names[last]
            self.index[self.names[i]] = i
            self.objects[i] = self.objects[last]
            self._keys[i] = self._keys[last]
            self._has[i] = self._has[last]
            for field in _ALL_COLUMNS:
                a = getattr(self.numbers, field)
                a[..., i] = a[..., last]
        for rest in (self.names, self.objects, self._keys, self._has):
            rest.pop()
        self._moved()
        self.total_generation += 1
        return i, last

    def _moved(self) -> None:
        self.generation += 1
        self.names_generation += 1
        self.spec_generation += 1

    def name_set(self) -> frozenset[str]:
        """The names of all nodes."""
        if self._name_set[0] != self.names_generation:
            self._name_set = (self.names_generation, frozenset(self.names))
        return self._name_set[1]

    def total(self) -> Resource:
        """The sum of allocatable over all nodes; computed again when one of them has changed."""
        if self._total[0] != self.total_generation:
            r = Resource()
            sums = self.numbers.allocatable[:, : len(self.names)].sum(axis=1)
            r.milli_cpu, r.memory = float(sums[0]), float(sums[1])
            for name in frozenset[str]().union(*self._keys) - {CPU, MEMORY}:
                r[name] = float(sums[self.rows[name]])
            self._total = (self.total_generation, r)
        return self._total[1].clone()

    def snapshot(self) -> NodeNumbers:
        """A copy of the columns. On a node that has only cpu and memory, no other resource is subtracted, not even
        `pods` (Volcano: Resource.Sub without scalars)."""
        made = self.numbers.copy(len(self.rows), len(self.names))
        if self._bare[0] != self.total_generation:
            self._bare = (self.total_generation, [i for i, keys in enumerate(self._keys) if len(keys) == 2])
        if self._bare[1]:
            made.idle[2:, self._bare[1]] = 0.0
        return made

    def _grow(self, rows: int, nodes: int) -> None:
        old = self.numbers
        new = NodeNumbers(max(rows, old.idle.shape[0]), max(nodes, old.idle.shape[1]))
        for name in (*_DENSE, "foreign"):
            a = getattr(old, name)
            getattr(new, name)[: a.shape[0], : a.shape[1]] = a
        for name in (*_PAIRS, *_FLAT):
            a = getattr(old, name)
            getattr(new, name)[..., : a.shape[-1]] = a
        self.numbers = new


def _static(node: Node) -> tuple[object, ...]:
    return (
        node.metadata.labels or {},
        node.metadata.annotations or {},
        *_spec(node),
    )


def _spec(node: Node) -> tuple[object, ...]:
    return node.spec.taints or [], node.spec.unschedulable, node.status.images or []
