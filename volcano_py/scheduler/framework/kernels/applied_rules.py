"""AppliedRules: the rules that apply to a class of equal pods, and how the scores of several plugins add up. Volcano:
PrioritizeNodes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any

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
)
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers


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


def _sum(terms: list[Any]) -> Any:
    """The sum without the addition to 0, which would allocate an array."""
    return sum(terms[1:], terms[0]) if terms else 0.0


class AppliedRules:
    """The request of one class, and the rules that apply to it."""

    __slots__ = ("all_rows", "batch", "filters", "gates", "need", "ok", "order", "rows", "static", "vector")

    vector: Floats
    rows: list[int]
    """The request, and the rows of it that must fit."""
    need: Floats
    all_rows: bool
    """Those rows as a column, and whether they are all rows."""
    filters: list[LocalFilter]
    """The LOCAL filters that apply."""
    gates: list[IdleGate]
    """Those LOCAL filters that also distinguish idle from releasing capacity."""
    order: list[Share]
    batch: list[Share]
    """The two sums of scores."""
    static: Bools | None
    """Nodes that the STATIC filters accept; None: all."""
    ok: Bools
    """Accepted by STATIC and LOCAL filters."""
