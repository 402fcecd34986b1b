"""Kernels: the vector operations over nodes that a cycle repeats most, with two implementations. Not in Volcano.

`NumpyKernels` needs only numpy: it calls the rules, or evaluates few nodes with fewer operations
(`framework.search.few_nodes`). `CompiledKernels` evaluates classes that have a `Program` as machine code
(`framework.kernels.compiled`), and does the same as `NumpyKernels` for other classes. The results are equal bit by bit.

The compiler takes a second to load and 110 MB of memory, which small clusters and the other programs do not need. After
its first cycle, or when the cluster has grown, the scheduler loads it in a thread (`worth_compiling`, `load_compiled`),
and then calls `use_compiled`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from volcano_py.scheduler.framework.kernels.formulas import program
from volcano_py.scheduler.framework.search.class_view import ClassView, NodeSearch, look, total_of_node
from volcano_py.scheduler.framework.search.few_nodes import few_nodes, look_at_few
from volcano_py.scheduler.framework.search.node_rules import Floats, Indices
from volcano_py.scheduler.framework.search.run_places import places_of_run
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers
from volcano_py.scheduler.model.nodes.some_nodes import SomeNodes
from volcano_py.scheduler.model.resource import EPS

if TYPE_CHECKING:
    from numpy.typing import NDArray


FEW_COLUMNS = 4
"""Up to this number of changed columns are computed one by one; more in one vector pass."""
ALL_NODES = slice(None)
MANY_NODES = 200
"""From this number of nodes the compiled kernels are worth the time to load them."""


class Kernels(Protocol):
    """The interface of both implementations."""

    name: str

    def prepare(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        """Prepare a new view, or one whose constants have changed."""
        ...

    def all_columns(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        """Compute the view's arrays for all nodes."""
        ...

    def some_columns(self, v: ClassView, task: Task, numbers: NodeNumbers, nodes: list[int]) -> None:
        """Compute the view's arrays for some nodes."""
        ...

    def best_column(self, masked: Floats, rank: NDArray[np.int64]) -> int:
        """The node with the highest score, among equals the one of the lowest rank; −1 if all scores are −inf."""
        ...

    def places_of_run(self, v: ClassView, task: Task, count: int, placement: NodeSearch) -> list[int]:
        """The best node for each of `count` equal tasks, one after the other; fewer if no further one fits now.

        `v`: up to date, and `foreseeable`.
        """
        ...


class NumpyKernels:
    """Vector passes with numpy."""

    name = "numpy"

    def prepare(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        v.few, v.few_known = None, False

    def all_columns(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        _store(v, ALL_NODES, look(v, task, numbers, ALL_NODES))

    def some_columns(self, v: ClassView, task: Task, numbers: NodeNumbers, nodes: list[int]) -> None:
        if len(nodes) <= FEW_COLUMNS:
            for node in nodes:
                _one(v, task, numbers, node)
        elif len(nodes) * 4 < len(v.ok):
            indices = np.asarray(nodes, dtype=np.intp)
            if not v.few_known:
                v.few, v.few_known = few_nodes(v, task, numbers), True
            if v.few is not None:
                found = look_at_few(v.few, numbers.matrix, indices, v.future_differs)
            else:
                found = look(v, task, SomeNodes(numbers, indices), indices)
            _store(v, indices, found)
        else:
            self.all_columns(v, task, numbers)

    def best_column(self, masked: Floats, rank: NDArray[np.int64]) -> int:
        if not len(masked):
            return -1
        first = int(masked.argmax())
        top = masked.item(first)
        if top == -np.inf:
            return -1
        (ties,) = (masked == top).nonzero()
        if len(ties) > 1:
            return int(ties[rank[ties].argmin()])
        return first

    def places_of_run(self, v: ClassView, task: Task, count: int, placement: NodeSearch) -> list[int]:
        return places_of_run(v, task, count, placement)


class CompiledKernels(NumpyKernels):
    """Loops as machine code. Raises ImportError if numba is not installed."""

    name = "numba"

    def __init__(self) -> None:
        from volcano_py.scheduler.framework.kernels import compiled

        self._evaluate = compiled.evaluate
        self._best = compiled.best_column
        self._places = compiled.places_of_run
        self._every: Indices = np.empty(0, dtype=np.intp)
        self._warm_up()

    def prepare(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        v.program = program(v, task, numbers)

    def all_columns(self, v: ClassView, task: Task, numbers: NodeNumbers) -> None:
        if v.program is None:
            super().all_columns(v, task, numbers)
            return
        count = len(v.ok)
        if len(self._every) < count:
            self._every = np.arange(count, dtype=np.intp)
        self._run(v, numbers, self._every, count)

    def some_columns(self, v: ClassView, task: Task, numbers: NodeNumbers, nodes: list[int]) -> None:
        if v.program is None:
            super().some_columns(v, task, numbers, nodes)
        else:
            self._run(v, numbers, np.asarray(nodes, dtype=np.intp), len(nodes))

    def best_column(self, masked: Floats, rank: NDArray[np.int64]) -> int:
        best: int = self._best(masked, rank)
        return best

    def places_of_run(self, v: ClassView, task: Task, count: int, placement: NodeSearch) -> list[int]:
        p = v.program
        if p is None:
            return super().places_of_run(v, task, count, placement)
        chosen: Indices = np.empty(count, dtype=np.intp)
        found = self._places(
            chosen, v.masked, placement.rank, placement.numbers.matrix, *p, v.future_differs, placement.kube_moves
        )
        placement.passes += 1
        nodes: list[int] = chosen[:found].tolist()
        return nodes

    def _warm_up(self) -> None:
        """The first call of a function is slower: the compiler then finds out how to read its arguments."""
        no, wholes, bools = np.empty((0, 1)), np.empty((0, 3), dtype=np.int64), np.empty(0, dtype=bool)
        constants, none, ranks = np.empty((0, 3)), np.empty(0), np.empty(0, dtype=np.int64)
        nothing = (no, wholes, constants, no, bools, wholes, none, np.zeros(5, dtype=np.int64), False)
        self._evaluate(self._every, 0, *nothing, bools, bools, bools, none)
        self._places(self._every, none, ranks, *nothing, False)
        self._best(none, ranks)

    def _run(self, v: ClassView, numbers: NodeNumbers, nodes: Indices, count: int) -> None:
        p = v.program
        assert p is not None
        self._evaluate(nodes, count, numbers.matrix, *p, v.future_differs, v.ok, v.idle, v.future, v.masked)


class _Chosen:
    kernels: Kernels = NumpyKernels()


def chosen() -> Kernels:
    """The kernels of this process."""
    return _Chosen.kernels


def use(kernels: Kernels) -> None:
    """Choose the kernels of sessions that are opened from now on."""
    _Chosen.kernels = kernels


def use_compiled() -> str:
    """Choose the compiled kernels if the compiler is installed; returns the name of the chosen kernels."""
    kernels = _compiled()
    if kernels is not None:
        use(kernels)
    return chosen().name


def worth_compiling(nodes: int) -> bool:
    """Whether the compiled kernels are worth it for a cluster of this size, and not chosen yet."""
    return nodes >= MANY_NODES and chosen().name != CompiledKernels.name


def load_compiled() -> None:
    """Load the compiled kernels, in any thread; choosing them takes no time then."""
    _compiled()


@cache
def _compiled() -> Kernels | None:
    try:
        return CompiledKernels()
    except ImportError:
        return None


def _store(v: ClassView, nodes: Any, found: tuple[Any, Any, Any, Any]) -> None:
    """Store the result of a pass over some nodes, or over all (`ALL_NODES`)."""
    v.ok[nodes], v.idle[nodes], future, v.masked[nodes] = found
    if v.future_differs:
        v.future[nodes] = future


def _one(v: ClassView, task: Task, n: NodeNumbers, node: int) -> None:
    """A pass over one column, without arrays."""
    idle = future = True
    for row in v.rows:
        need = v.vector.item(row)
        free = n.idle.item(row, node)
        if need - free >= EPS:
            idle = False
        if v.future_differs and need - (free + n.releasing.item(row, node) - n.pipelined.item(row, node)) >= EPS:
            future = False
    idle = idle and all(gate.idle_node(task, node) for gate in v.gates)
    v.idle[node] = idle
    if v.future_differs:
        v.future[node] = future
    ok = v.static is None or bool(v.static[node])
    for f in v.filters:
        ok = ok and f.filter_node(task, node) == 0
    v.ok[node] = ok
    if not (ok and idle and future):
        v.masked[node] = -np.inf
        return
    v.masked[node] = total_of_node(v, task, node)
