"""The arrays of a class for few nodes, with numpy. Not in Volcano.

The same results as those of the rules (`class_view.look`), bit by bit. For few nodes, an operation of numpy takes the
same time whatever its length, so this is written with as few of them as possible: the numbers of all rules with the
task on the node are one sum, and constants are arrays of dimension 0, which numpy does not have to convert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.formulas import Formula, operations_of
from volcano_py.scheduler.framework.node_rules import Bools, Floats, Indices
from volcano_py.scheduler.model.node_table import NodeNumbers
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.task import Task

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.class_view import ClassView

Constant = NDArray[np.float64]
"""An array of dimension 0."""

_HALF, _ONE, _HUNDRED, _EQUAL, _NOTHING = (np.array(number) for number in (0.5, 1.0, 100.0, 75.0, 0.0))
_EPS: Constant = np.array(EPS)
_LACKS: Constant = np.array(-EPS)
_NOWHERE: Constant = np.array(-np.inf)


class Rows(NamedTuple):
    """Where the numbers are in the matrix."""

    idle: slice | list[int]
    """The rows that must fit."""
    future: list[tuple[int, int, int, Constant]]
    """The same with the rows of releasing and pipelined, and the request."""
    max_pods: int
    kube_pods: int
    capacity: slice
    nonzero: slice
    requested: slice
    """cpu and memory of kube_requested."""


_Step = tuple[Formula, int, int, Constant | None, Constant | None]
"""As in `Operations.each`, without requests. A weight that is None is 1."""


class FewNodes(NamedTuple):
    """The rules of one class, prepared for few nodes."""

    operations: list[_Step]
    statics: list[Floats]
    static: Bools | None
    """Nodes that the STATIC filters accept; None: all."""
    task: Floats
    """What the task adds to the numbers of its node: [rows of the matrix x 1]."""
    rows: Rows


def few_nodes(v: ClassView, task: Task, numbers: NodeNumbers) -> FewNodes | None:
    """None if a rule of the class has no term, or a node lacks a resource that counts: the formulas here divide by its
    capacity."""
    found = operations_of(v, task, numbers)
    if found is None:
        return None
    have: list[Any] = [numbers.kube_capacity]
    have += [numbers.matrix[row] for (formula, _, row), _ in found.each if formula is Formula.FULLNESS]
    if not all((each > 0).all() for each in have):
        return None
    at: dict[str, Any] = numbers.where
    idle, releasing, pipelined, kube = (at[n].start for n in ("idle", "releasing", "pipelined", "kube_requested"))
    usage = numbers.usage(v.vector, task.spec_class.nonzero)
    added = np.zeros((len(numbers.matrix), 1))
    added[idle : idle + len(usage.held), 0] = usage.held
    added[kube : kube + len(usage.kube), 0] = usage.kube
    rows = Rows(
        slice(idle, idle + len(v.rows)) if v.all_rows else [idle + row for row in v.rows],
        [(idle + row, releasing + row, pipelined + row, np.array(v.vector[row])) for row in v.rows],
        at["max_pods"],
        at["kube_pods"],
        at["kube_capacity"],
        at["kube_nonzero"],
        slice(kube, kube + 2),
    )
    operations: list[_Step] = []
    for (formula, row, second), (a, b, _) in found.each:
        if formula is Formula.FULLNESS:
            operations.append((formula, row, second, _weight(b), None))
        elif formula is Formula.CONSTANT:
            operations.append((formula, row, second, np.array(a), None))
        else:
            operations.append((formula, row, second, _weight(a), _weight(b)))
    return FewNodes(operations, found.statics, v.static, added, rows)


def look_at_few(few: FewNodes, matrix: Floats, nodes: Indices, future_differs: bool) -> tuple[Any, Any, Any, Any]:
    """As `class_view.look`, for some nodes; `matrix`: the numbers of all nodes."""
    rows = few.rows
    before = matrix.take(nodes, axis=1)
    after = before + few.task
    idle: Any = None
    for enough in after[rows.idle] > _LACKS:
        idle = enough if idle is None else idle & enough
    future, now = idle, idle
    if future_differs:
        future = None
        for row, releasing, pipelined, need in rows.future:
            enough = need - (before[row] + before[releasing] - before[pipelined]) < _EPS
            future = enough if future is None else future & enough
        now = idle & future
    ok: Any = None if few.static is None else few.static[nodes]
    sums: list[Any] = [None, None]
    """The sums of order and of batch; None: nothing yet."""
    share: Any = None
    full: Any = None
    over: Any = None
    for formula, row, second, a, b in few.operations:
        if formula is Formula.POD_NUMBER:
            accepts = before[rows.max_pods] >= after[rows.kube_pods]
            ok = accepts if ok is None else ok & accepts
        elif formula is Formula.FULLNESS:
            have, wanted = before[second], after[row]
            above = wanted > have
            over = above if over is None else over | above
            part = (wanted if a is None else wanted * a) / have
            full = part if full is None else full + part
        elif formula is Formula.FULLNESS_MEAN:
            if full is not None:
                full = full if a is None else full / a
                full = full if b is None else full * b
                full[over] = 0.0
                share = full if share is None else share + full
            full = over = None
        elif formula is Formula.END_ORDER or formula is Formula.END_BATCH:
            if share is not None:
                end = int(formula is Formula.END_BATCH)
                sums[end] = share if sums[end] is None else sums[end] + share
            share = None
        else:
            term: Any
            if formula is Formula.CONSTANT:
                term = a
            elif formula is Formula.STATIC:
                term = few.statics[row][nodes]
            elif formula is Formula.BALANCED:
                term = _balanced(before[rows.capacity], before[rows.requested], after[rows.requested], a)
            else:
                term = _requested(formula, before[rows.capacity], after[rows.nonzero], a)
            share = term if share is None else share + term
    order, batch = (_NOTHING if each is None else each for each in sums)
    if ok is None:
        ok = np.ones(len(nodes), dtype=bool)
    return ok, idle, future, np.where(ok & now, order + batch, _NOWHERE)


def _weight(number: float) -> Constant | None:
    return None if number == 1.0 else np.array(number)


def _requested(formula: Formula, have: Floats, wanted: Floats, weight: Constant | None) -> Floats:
    """Least or most allocated: the mean of two whole percentages, rounded down."""
    part = np.minimum(wanted, have)
    if formula is Formula.LEAST_ALLOCATED:
        np.subtract(have, part, part)
    np.multiply(part, _HUNDRED, part)
    np.divide(part, have, part)
    np.floor(part, part)
    mean: Floats = part[0] + part[1]
    np.multiply(mean, _HALF, mean)
    np.floor(mean, mean)
    return mean if weight is None else mean * weight


def _balanced(have: Floats, before: Floats, after: Floats, weight: Constant | None) -> Floats:
    """How much more evenly cpu and memory are used with the task than without it."""
    change = _even(after, have)
    np.subtract(change, _even(before, have), change)
    np.multiply(change, _HALF, change)
    np.add(change, _EQUAL, change)
    np.floor(change, change)
    return change if weight is None else change * weight


def _even(used: Floats, have: Floats) -> Floats:
    """How evenly cpu and memory are used, 0 to 100, by node."""
    part = np.minimum(used, have)
    np.divide(part, have, part)
    even: Floats = part[0] - part[1]
    np.abs(even, even)
    np.multiply(even, _HALF, even)
    np.subtract(_ONE, even, even)
    np.multiply(even, _HUNDRED, even)
    return np.floor(even, even)
