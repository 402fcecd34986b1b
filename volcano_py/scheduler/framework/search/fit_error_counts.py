"""Why no node accepts a task: every node's reason, counted. Volcano: FitErrors."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from volcano_py.scheduler.framework.search.class_view import ClassView, NodeSearch
from volcano_py.scheduler.framework.search.fit_errors import ABORTING, FitCode, FitErrors, insufficient
from volcano_py.scheduler.framework.search.node_rules import Bools, Codes, Filter, Indices
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS


def count_fit_errors(
    placement: NodeSearch, task: Task, check_capacity: bool, nodes: Indices | None = None
) -> FitErrors:
    """The reasons of all nodes, or of some; with `check_capacity` lack of capacity is the only reason of a node that
    has none."""
    view = placement.view(task)
    count = len(placement.table)
    counts: dict[str, int] = {}
    unresolvable = np.zeros(count, dtype=bool)
    active = np.ones(count, dtype=bool)
    if nodes is not None:
        active[:] = False
        active[nodes] = True
    looked_at = int(active.sum())
    if placement.shard is not None and placement.shard_is_hard:
        active &= placement.shard
        _add(counts, "node isn't in scheduler node shard", looked_at - int(active.sum()))
    if check_capacity:
        lacking = active & ~view.future
        _count_lacking(placement, view, lacking, counts)
        active &= ~lacking
    rejected = np.zeros(count, dtype=bool)
    previous = None
    for plugin, f in placement.filters:
        if plugin != previous:  # only the first plugin that rejects a node counts
            active &= ~rejected
            rejected[:] = False
            previous = plugin
        if not f.applies(task):
            continue
        codes = placement.codes(f, task)
        hit = active & (codes != 0)
        if not hit.any():
            continue
        for code, found in enumerate(np.bincount(codes[hit])):
            if found:
                _add(counts, f.reasons[code - 1].text, int(found))
        rejected |= hit
        unresolvable |= hit & with_code(f, codes, (FitCode.UNRESOLVABLE,))
        active &= ~(hit & with_code(f, codes, ABORTING))
    return FitErrors(counts, looked_at, unresolvable if unresolvable.any() else None)


def with_code(f: Filter, codes: Codes, wanted: Collection[FitCode]) -> Bools:
    """The nodes that a filter rejects for a reason with one of some codes."""
    of_reason = np.array([False, *(reason.code in wanted for reason in f.reasons)], dtype=bool)
    found: Bools = of_reason[codes]
    return found


def _count_lacking(placement: NodeSearch, view: ClassView, lacking: Bools, counts: dict[str, int]) -> None:
    """The first lacking resource of each node, in the order cpu, memory, pods, others by name."""
    n = placement.numbers
    names = list(placement.table.rows)
    rest = lacking.copy()
    for row in sorted(view.rows, key=lambda row: (min(row, 3), names[row])):
        soon = n.idle[row] + n.releasing[row] - n.pipelined[row]
        short = rest & (view.vector[row] - soon >= EPS)
        _add(counts, insufficient(names[row]), int(short.sum()))
        rest &= ~short


def _add(counts: dict[str, int], reason: str, found: int) -> None:
    if found:
        counts[reason] = counts.get(reason, 0) + found
