"""The arrays of a class for few nodes, with numpy. Not in Volcano.

The same results as those of the rules (`class_view.look`), bit by bit. For few nodes, an operation of numpy takes the
same time whatever its length, so this is written with as few of them as possible: the numbers of all rules with the
task on the node are one sum, and constants are arrays of dimension 0, which numpy does not have to convert.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.kernels.applied_rules import AppliedRules
from volcano_py.scheduler.framework.kernels.formulas import Formula, operations_of
from volcano_py.scheduler.framework.search.node_rules import Bools, Floats, Indices
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.rules.allocation import LEAST_ALLOCATED, MOST_ALLOCATED, balances, evennesses, mean_of_two

Constant = NDArray[np.float64]
"""An array of dimension 0."""

_NOTHING: Constant = np.array(0.0)
_EPS: Constant = np.array(EPS)
_LACKS: Constant = np.array(-EPS)
_NOWHERE: Constant = np.array(-np.inf)
_STRATEGIES = {Formula.LEAST_ALLOCATED: LEAST_ALLOCATED, Formula.MOST_ALLOCATED: MOST_ALLOCATED}


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


def few_nodes(v: AppliedRules, task: Task, numbers: NodeNumbers) -> FewNodes | None:
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
            else:
                have = before[rows.capacity]
                if formula is Formula.BALANCED:
                    without = evennesses(before[rows.requested], have)
                    term = balances(evennesses(after[rows.requested], have), without)
                else:
                    term = mean_of_two(_STRATEGIES[formula], after[rows.nonzero], have)
                term = term if a is None else term * a
            share = term if share is None else share + term
    order, batch = (_NOTHING if each is None else each for each in sums)
    if ok is None:
        ok = np.ones(len(nodes), dtype=bool)
    return ok, idle, future, np.where(ok & now, order + batch, _NOWHERE)


def _weight(number: float) -> Constant | None:
    return None if number == 1.0 else np.array(number)
