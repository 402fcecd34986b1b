"""The order in which nodes are tried for a task that may evict: highest score first. Volcano: PrioritizeNodes and
SortNodes in preempt.

Equal tasks follow one another, and each of them changes few nodes: the scores of a class are kept and updated for the
nodes that changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.kernels.choice import ALL_NODES, FEW_COLUMNS
from volcano_py.scheduler.framework.placement import Placement
from volcano_py.scheduler.framework.search.broken_rules import isolating
from volcano_py.scheduler.framework.search.class_view import total_of_node, total_of_nodes
from volcano_py.scheduler.framework.search.node_rank import best_columns
from volcano_py.scheduler.framework.search.node_rules import Bools, Floats, Indices
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import SomeNodes

_FIRST = 128
"""How many nodes are sorted first; in most cases one of them is used."""
_KEPT = 8
"""The number of classes whose scores are kept."""


class _Known(NamedTuple):
    """The complete scores of all nodes for one class, up to a position in the log of changed columns."""

    position: int
    constants: list[float]
    """The part of the DOMAIN scores if it is the same for all nodes."""
    rules: Any
    scores: Floats


class NodeScores:
    """The complete scores of all nodes, by class."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, _Known] = {}

    def of_all(self, task: Task) -> Floats | None:
        """The scores of all nodes, updated by the next call; None: they depend on which nodes are candidates."""
        placement = self._session.placement
        view = placement.view(task)
        if placement.may_fail or not placement.even(view, task):
            return None
        constants = [part.constant for part in view.uneven]
        known = self._known.pop(task.spec_class.id, None)
        if known is not None and known.constants == constants and known.rules is placement.scores:
            scores = known.scores
            _update(placement, task, scores, known.position)
        else:
            scores = _all(placement, task)
        if len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[task.spec_class.id] = _Known(placement.numbers.log.position, constants, placement.scores, scores)
        return scores


@isolating
def _all(placement: Placement, task: Task) -> Floats:
    view, numbers = placement.view(task), placement.numbers
    placement.passes += 1
    scores: Floats = np.zeros(len(placement.table)) + total_of_nodes(view, task, numbers, ALL_NODES)
    return scores


@isolating
def _update(placement: Placement, task: Task, scores: Floats, position: int) -> None:
    view, changed = placement.view(task), placement.numbers.log.since(position)
    if len(changed) > FEW_COLUMNS:
        nodes = np.asarray(changed, dtype=np.intp)
        scores[nodes] = total_of_nodes(view, task, SomeNodes(placement.numbers, nodes), nodes)
        return
    for node in changed:
        scores[node] = total_of_node(view, task, node)


def best_first(session: Session, task: Task, nodes: Bools, freeable: Bools | None = None) -> Iterator[int]:
    """The nodes with the highest score first, equal ones by rank; nodes of the own shard before all others.

    `freeable`: only these are returned. The others take part where scores depend on which nodes are candidates.
    """
    wanted = nodes if freeable is None else nodes & freeable
    candidates = np.flatnonzero(wanted)
    if not len(candidates):
        return iter(())
    scores_of_all = session.shared(NodeScores, lambda: NodeScores(session)).of_all(task)
    if scores_of_all is not None:
        scores = scores_of_all[candidates]
    else:
        compared = np.flatnonzero(nodes)
        scores = session.placement.scores_of(task, compared)[wanted[compared]]
    rank, shard = session.placement.rank, session.placement.shard
    if shard is not None:
        return iter(candidates[np.lexsort((rank[candidates], -scores, ~shard[candidates]))].tolist())
    return _best_then_sorted(candidates, scores, rank)


def _best_then_sorted(candidates: Indices, scores: Floats, rank: NDArray[np.int64]) -> Iterator[int]:
    """The nodes are sorted only if the best one is not used. `rank`: of all nodes."""
    top = candidates[scores == scores.max()]
    used = int(top[rank[top].argmin()]) if len(top) else None  # no score equals a NaN
    if used is not None:
        yield used
    yield from (node for node in _sorted(candidates, scores, rank[candidates]) if node != used)


def _sorted(candidates: Indices, scores: Floats, rank: NDArray[np.int64]) -> Iterator[int]:
    """Sort in two parts: the second part is sorted only if no node of the first is used."""
    first = best_columns(scores, rank, _FIRST)
    yield from candidates[first][np.lexsort((rank[first], -scores[first]))].tolist()
    rest = np.setdiff1d(np.arange(len(candidates)), first)
    yield from candidates[rest][np.lexsort((rank[rest], -scores[rest]))].tolist()
