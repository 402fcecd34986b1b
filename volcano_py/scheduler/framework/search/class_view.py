"""ClassView: which nodes accept a class of equal pods, and their scores, as arrays. `Placement` builds and updates it.
Volcano: PrioritizeNodes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from volcano_py.scheduler.framework.kernels.formulas import Program
from volcano_py.scheduler.framework.search.few_nodes import FewNodes
from volcano_py.scheduler.framework.search.fit_errors import FitErrors
from volcano_py.scheduler.framework.search.node_rules import (
    DOMAIN,
    LOCAL,
    STATIC,
    Bools,
    DomainScore,
    Floats,
    IdleGate,
    Indices,
    LocalFilter,
    LocalScore,
    Score,
    WholeFilter,
)
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers
from volcano_py.scheduler.model.resource import EPS


class Share:
    """What one plugin adds to one of the two sums of scores.

    Volcano adds the scores up plugin by plugin. Scores are floating-point numbers: a different order of additions
    would make different nodes equal.
    """

    __slots__ = ("constant", "domain", "local", "static")

    def __init__(self, static: Floats | None, local: list[LocalScore], domain: list[DomainScore]) -> None:
        self.static = static
        self.local = local
        self.domain = domain
        self.constant = 0.0
        """What the DOMAIN scores add while all nodes have the same score."""

    def score(self, task: Task, numbers: Numbers, nodes: Any, candidates: Indices | None) -> Any:
        """For some nodes; with `candidates` (the same nodes as indices) the DOMAIN scores are included."""
        terms: list[Any] = [s.score(task, numbers) for s in self.local]
        if self.static is not None:
            terms.append(self.static[nodes])
        if candidates is not None:
            terms += (d.score(task, candidates) for d in self.domain)
        elif self.constant:
            terms.append(self.constant)
        return _sum(terms)

    def one(self, task: Task, node: int) -> float:
        """The same for one node, without arrays and without DOMAIN scores."""
        share = 0.0
        for s in self.local:
            share += s.score_node(task, node)
        if self.static is not None:
            share += self.static.item(node)
        return share + self.constant


def shares(task: Task, scores: list[tuple[str, Score]], batch: bool, static: Callable[[Score], Floats]) -> list[Share]:
    """One of the two sums, as what each plugin adds to it, in order."""
    found = []
    for _, group in groupby(scores, key=itemgetter(0)):
        mine = [s for _, s in group if s.batch == batch and s.applies(task)]
        if mine:
            fixed = [static(s) for s in mine if s.scope is STATIC]
            local: list[LocalScore] = [s for s in mine if s.scope is LOCAL]
            domain: list[DomainScore] = [s for s in mine if s.scope is DOMAIN]
            found.append(Share(_sum(fixed) if fixed else None, local, domain))
    return found


def total(parts: list[Share], task: Task, numbers: Numbers, nodes: Any, candidates: Indices | None) -> Any:
    """One of the two sums, for some nodes: an array, or one number if all have the same score."""
    return _sum([part.score(task, numbers, nodes, candidates) for part in parts])


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


def _sum(terms: list[Any]) -> Any:
    """The sum without the addition to 0, which would allocate an array."""
    return sum(terms[1:], terms[0]) if terms else 0.0


class ClassView:
    """The arrays of one class, up to a position in the log of changed columns."""

    __slots__ = (
        "all_rows",
        "batch",
        "domain_filters",
        "few",
        "few_known",
        "filters",
        "fit_errors",
        "foreseeable",
        "future",
        "future_differs",
        "gates",
        "idle",
        "masked",
        "need",
        "ok",
        "order",
        "position",
        "program",
        "rows",
        "stale",
        "static",
        "uneven",
        "vector",
    )

    position: int
    vector: Floats
    rows: list[int]
    """The request, and the rows of it that must fit."""
    need: Floats
    all_rows: bool
    """Those rows as a column, and whether they are all rows."""
    domain_filters: list[WholeFilter]
    """The DOMAIN filters that apply."""
    filters: list[LocalFilter]
    """The LOCAL filters that apply."""
    gates: list[IdleGate]
    """Those LOCAL filters that also distinguish idle from releasing capacity."""
    order: list[Share]
    batch: list[Share]
    """The two sums of scores."""
    uneven: list[Share]
    """The parts of the sums that have DOMAIN scores."""
    stale: bool
    """One of their constants has changed since `masked` was computed."""
    static: Bools | None
    """Nodes that the STATIC filters accept; None: all."""
    ok: Bools
    """Accepted by STATIC and LOCAL filters."""
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
