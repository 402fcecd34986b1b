"""Node rules as data, so that a compiled kernel can evaluate them without calls to Python. Not in Volcano.

A LOCAL rule may have a method `term(task)`. It returns the rule for the task's class as a `FormulaTerm`, one of a few
formulas with its constants, or None if no formula applies. A `Program` consists of the terms of all rules of a class;
if one of the rules has no term, the class has no program and its rules are called.

A program adds in the order of `applied_rules.total`: floating-point sums depend on the order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.kernels.applied_rules import AppliedRules, Share
from volcano_py.scheduler.framework.search.node_rules import Bools, Floats, LocalFilter, LocalScore
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers

Wholes = NDArray[np.int64]


class Formula(IntEnum):
    """What a term computes. The constants are those of `FormulaTerm`; rows are rows of the node table."""

    POD_NUMBER = 0
    """A filter: the node accepts another pod."""
    LEAST_ALLOCATED = 1
    """(weight, milli-cpu, bytes): non-zero requests."""
    MOST_ALLOCATED = 2
    BALANCED = 3
    """(weight, milli-cpu, bytes): requests."""
    FULLNESS = 4
    """(row, request, weight) of each resource that counts, in their order, and then FULLNESS_MEAN."""
    FULLNESS_MEAN = 5
    """(sum of the weights, factor)."""
    STATIC = 6
    """The sum of a plugin's STATIC scores, by node."""
    CONSTANT = 7
    """(value): what a plugin's DOMAIN scores add to every node."""
    END_ORDER = 8
    END_BATCH = 9
    """The end of what one plugin adds to the first or to the second sum."""


class FormulaTerm(NamedTuple):
    """A formula with its constants; FULLNESS: three constants for each resource."""

    formula: Formula
    constants: tuple[float, ...] = ()


class Program(NamedTuple):
    """The rules of one class."""

    operations: Wholes
    """[operations x 3]: the formula, and up to two rows of the matrix of numbers (or of `statics`)."""
    constants: Floats
    """[operations x 3]."""
    statics: Floats
    """[plugins x nodes]."""
    static: Bools
    """Nodes that the STATIC filters accept; empty: all."""
    rows: Wholes
    """[rows that must fit x 3]: rows of idle, releasing and pipelined in the matrix of numbers."""
    needs: Floats
    """The request in each of these rows."""
    places: Wholes
    """Rows in the matrix of numbers: of max_pods, kube_pods, kube_nonzero, kube_requested and kube_capacity."""


_Operation = tuple[tuple[Formula, int, int], tuple[float, float, float]]
"""A formula with up to two rows of the matrix of numbers (or of the list of statics), and its constants."""


class Operations(NamedTuple):
    """The rules of one class in the order in which they are evaluated, and the sums of the STATIC scores."""

    each: list[_Operation]
    statics: list[Floats]


_ALL: Bools = np.empty(0, dtype=bool)


def term_of(rule: LocalFilter | LocalScore, task: Task) -> FormulaTerm | None:
    """The term of a rule; None if it has none."""
    make = getattr(rule, "term", None)
    term: FormulaTerm | None = None if make is None else make(task)
    return term


def operations_of(v: AppliedRules, task: Task, numbers: NodeNumbers) -> Operations | None:
    """The operations of a class; None if one of its rules has no term."""
    if v.gates:
        return None
    found = Operations([], [])
    for f in v.filters:
        term = term_of(f, task)
        if term is None or term.formula is not Formula.POD_NUMBER:
            return None
        found.each.append(_operation(term.formula))
    for parts, end in ((v.order, Formula.END_ORDER), (v.batch, Formula.END_BATCH)):
        for part in parts:
            if not _append(found, part, task, numbers):
                return None
            found.each.append(_operation(end))
    return found


def program(v: AppliedRules, task: Task, numbers: NodeNumbers) -> Program | None:
    """The program of a class; None if one of its rules has no term."""
    found = operations_of(v, task, numbers)
    if found is None:
        return None
    at = {name: where.start if isinstance(where, slice) else where for name, where in numbers.where.items()}
    fit = [(at["idle"] + row, at["releasing"] + row, at["pipelined"] + row) for row in v.rows]
    return Program(
        np.array([heads for heads, _ in found.each], dtype=np.int64).reshape(-1, 3),
        np.array([values for _, values in found.each], dtype=np.float64).reshape(-1, 3),
        _stacked(found.statics, len(v.ok)),
        _ALL if v.static is None else np.ascontiguousarray(v.static),
        np.array(fit, dtype=np.int64).reshape(-1, 3),
        np.ascontiguousarray(v.vector[v.rows], dtype=np.float64),
        np.array(
            [at[name] for name in ("max_pods", "kube_pods", "kube_nonzero", "kube_requested", "kube_capacity")],
            dtype=np.int64,
        ),
    )


def _append(found: Operations, part: Share, task: Task, numbers: NodeNumbers) -> bool:
    """Append what one plugin adds to a sum; False: one of its scores has no term."""
    for score in part.local:
        term = term_of(score, task)
        if term is None:
            return False
        if term.formula is Formula.FULLNESS:
            found.each.extend(_fullness(term.constants, numbers))
        else:
            found.each.append(_operation(term.formula, *term.constants))
    if part.static is not None:
        found.each.append(_operation(Formula.STATIC, row=len(found.statics)))
        found.statics.append(part.static)
    if part.domain:
        found.each.append(_operation(Formula.CONSTANT, part.constant))
    return True


def _fullness(constants: tuple[float, ...], numbers: NodeNumbers) -> list[_Operation]:
    """The operations of FULLNESS: one for each resource, and the mean of the last two constants."""
    used, allocatable = (where.start for where in (numbers.where["used"], numbers.where["allocatable"]))  # type: ignore[union-attr]
    found: list[_Operation] = []
    for i in range(0, len(constants) - 2, 3):
        row = int(constants[i])
        found.append(((Formula.FULLNESS, used + row, allocatable + row), (constants[i + 1], constants[i + 2], 0.0)))
    return [*found, _operation(Formula.FULLNESS_MEAN, *constants[-2:])]


def _operation(formula: Formula, a: float = 0.0, b: float = 0.0, c: float = 0.0, *, row: int = 0) -> _Operation:
    return (formula, row, 0), (a, b, c)


def _stacked(statics: list[Floats], count: int) -> Floats:
    """One row for each array; a single one is not copied."""
    if not statics:
        return np.empty((0, count))
    if len(statics) == 1:
        return np.ascontiguousarray(statics[0], dtype=np.float64).reshape(1, -1)
    return np.ascontiguousarray(np.stack(statics), dtype=np.float64)
