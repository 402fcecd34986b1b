"""ClassView: which nodes accept a class of equal pods, and their scores, as arrays. `Placement` builds and updates it.
Volcano: PrioritizeNodes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.kernels.applied_rules import AppliedRules, Share, total
from volcano_py.scheduler.framework.kernels.formulas import Program
from volcano_py.scheduler.framework.search.few_nodes import FewNodes
from volcano_py.scheduler.framework.search.fit_errors import FitErrors
from volcano_py.scheduler.framework.search.node_rules import Bools, Codes, Filter, Floats, WholeFilter
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers, NodeTable
from volcano_py.scheduler.model.nodes.some_nodes import Numbers
from volcano_py.scheduler.model.resource import EPS


def total_of_nodes(v: ClassView, task: Task, numbers: Numbers, nodes: Any) -> Any:
    """Both sums for some nodes, with constants for the DOMAIN scores."""
    return total(v.order, task, numbers, nodes, None) + total(v.batch, task, numbers, nodes, None)


def total_of_node(v: ClassView, task: Task, node: int) -> float:
    """The same for one node, without arrays."""
    order = batch = 0.0
    for part in v.order:
        order += part.one(task, node)
    for part in v.batch:
        batch += part.one(task, node)
    return order + batch


def look(v: ClassView, task: Task, numbers: Numbers, nodes: Any) -> tuple[Any, Any, Any, Any]:
    """The class's arrays `ok`, `idle`, `future` and `masked` for some nodes with given numbers.

    `nodes`: the columns of these nodes, for results that do not depend on numbers.
    """
    free = numbers.idle if v.all_rows else numbers.idle[v.rows]
    idle = now = np.logical_and.reduce(v.need - free < EPS)
    for gate in v.gates:
        idle = now = idle & gate.idle(task, numbers)
    future = idle
    if v.future_differs:
        soon = free + numbers.releasing[v.rows] - numbers.pipelined[v.rows]
        future = np.logical_and.reduce(v.need - soon < EPS)
        now = idle & future
    ok: Any = None if v.static is None else v.static[nodes]
    for f in v.filters:
        accepts = f.filter(task, numbers) == 0
        ok = accepts if ok is None else ok & accepts
    if ok is None:
        ok = np.ones(len(idle), dtype=bool)
    return ok, idle, future, np.where(ok & now, total_of_nodes(v, task, numbers, nodes), -np.inf)


def foreseeable(v: ClassView, task: Task) -> bool:
    """Whether every rule can evaluate a node as it would be with more tasks of the class (`in_runs`)."""
    scores = [s for part in (*v.order, *v.batch) for s in (*part.local, *part.domain)]
    return all(getattr(rule, "in_runs", False) for rule in (*v.filters, *scores))


class ClassView(AppliedRules):
    """The arrays of one class, up to a position in the log of changed columns."""

    __slots__ = (
        "domain_filters",
        "few",
        "few_known",
        "fit_errors",
        "foreseeable",
        "future",
        "future_differs",
        "idle",
        "masked",
        "position",
        "program",
        "stale",
        "uneven",
    )

    position: int
    domain_filters: list[WholeFilter]
    """The DOMAIN filters that apply."""
    uneven: list[Share]
    """The parts of the sums that have DOMAIN scores."""
    stale: bool
    """One of their constants has changed since `masked` was computed."""
    idle: Bools
    future: Bools
    """Has idle capacity; has capacity once releasing tasks are deleted (the same array while nothing is releasing)."""
    future_differs: bool
    masked: Floats
    """The sum of the scores, with constants for the DOMAIN scores; −inf where the task does not fit now, or fits only
    in releasing capacity."""
    program: Program | None
    """The rules as data for the compiled kernels; None: the rules are called."""
    few: FewNodes | None
    """The rules for few nodes with numpy; None: the rules are called."""
    few_known: bool
    """Whether `few` is set. Most classes never need it."""
    foreseeable: bool
    """Whether the nodes of a run of equal tasks can be found together."""
    fit_errors: tuple[int, FitErrors] | None


class NodeSearch(Protocol):
    """What the parts of a search read of it; see `Placement`."""

    table: NodeTable
    numbers: NodeNumbers
    filters: list[tuple[str, Filter]]
    rank: NDArray[np.int64]
    shard: Bools | None
    shard_is_hard: bool
    kube_moves: bool
    passes: int

    def view(self, task: Task) -> ClassView: ...
    def codes(self, rule: Filter, task: Task) -> Codes: ...
