"""The nodes that would accept a class of tasks after evictions, updated for the nodes that changed. Volcano:
the statuses of PredicateNodes that are UnschedulableAndUnresolvable.

The tasks of a gang ask for the same nodes one after another, and each of them changes one node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from volcano_py.scheduler.framework.kernels.choice import FEW_COLUMNS
from volcano_py.scheduler.framework.search.class_view import NodeSearch
from volcano_py.scheduler.framework.search.fit_error_counts import with_code
from volcano_py.scheduler.framework.search.fit_errors import ABORTING
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, Bools, Filter
from volcano_py.scheduler.model.jobs.task import Task

_KEPT = 8
"""The number of classes whose nodes are kept."""


class _Known(NamedTuple):
    """The nodes of one class, up to a position in the log of changed columns."""

    position: int
    filters: Any
    """The session's filters at that time; they are replaced if one of them raises."""
    applied: list[tuple[str, Filter]]
    """(plugin, filter) of those that apply to the class."""
    nodes: Bools


class ResolvableNodes:
    """The results for the last few classes."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def of(self, placement: NodeSearch, task: Task) -> Bools:
        """A new array."""
        log = placement.numbers.log
        known = self._known.pop(task.spec_class.id, None)
        if known is None or known.filters is not placement.filters:
            applied = [(plugin, f) for plugin, f in placement.filters if f.applies(task)]
            if any(f.scope is DOMAIN for _, f in applied):
                return _all(placement, task, applied)
            known = _Known(log.position, placement.filters, applied, _all(placement, task, applied))
        elif known.position != log.position:
            changed = log.since(known.position)
            if len(changed) > FEW_COLUMNS:
                known = known._replace(nodes=_all(placement, task, known.applied))
            else:
                for node in changed:
                    known.nodes[node] = _one(placement, task, known.applied, node)
            known = known._replace(position=log.position)
        if len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[task.spec_class.id] = known
        return known.nodes.copy()


def _all(placement: NodeSearch, task: Task, applied: list[tuple[str, Filter]]) -> Bools:
    """The first plugin that rejects a node decides."""
    count = len(placement.table)
    open_, lost = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    if placement.shard is not None and placement.shard_is_hard:
        lost |= ~placement.shard
    rejected = np.zeros(count, dtype=bool)
    previous = None
    for plugin, f in applied:
        if plugin != previous:
            open_ &= ~rejected
            rejected[:] = False
            previous = plugin
        codes = placement.codes(f, task)
        if not codes.any():
            continue
        hit = open_ & (codes != 0)
        rejected |= hit
        lost |= hit & with_code(f, codes, ABORTING)
    return ~lost


def _one(placement: NodeSearch, task: Task, applied: list[tuple[str, Filter]], node: int) -> bool:
    """The same for one node, without arrays."""
    if placement.shard is not None and placement.shard_is_hard and not placement.shard[node]:
        return False
    decided = None
    for plugin, f in applied:
        if decided is not None and plugin != decided:
            return True
        code = f.filter_node(task, node) if f.scope is LOCAL else int(placement.codes(f, task)[node])
        if code:
            if f.reasons[code - 1].code in ABORTING:
                return False
            decided = plugin
    return True
