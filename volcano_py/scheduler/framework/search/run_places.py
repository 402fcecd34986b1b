"""The nodes of a run of many equal tasks, found with few vector passes. Volcano: allocateResourcesForTasks, which
scores all nodes for each task.

A task changes only the numbers of its own node, so the score of a node depends on how many tasks of the run it has, not
on the others. The nodes' scores with one task more, two more and so on are computed for many nodes in one pass; a heap
then gives the best node of each step.
"""

from __future__ import annotations

import heapq

import numpy as np

from volcano_py.scheduler.framework.search.class_view import ClassView, NodeSearch, look
from volcano_py.scheduler.framework.search.node_rank import best_columns
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import FilledNodes

_WIDTH, _DEPTH = 16, 4
"""Number of nodes, and of tasks on each, that the first look-ahead covers."""

_Entry = tuple[float, int, int, int]
"""(−score, rank, node column, number of tasks of the run on the node): the smallest is the best."""


def places_of_run(view: ClassView, task: Task, count: int, placement: NodeSearch) -> list[int]:
    """The best node for each of `count` tasks of a class, one after the other; fewer if no further one fits now.

    `view`: up to date, and `foreseeable`.
    """
    rank = placement.rank
    first = best_columns(view.masked, rank, count)
    scores = (-view.masked[first]).tolist()
    heap: list[_Entry] = list(zip(scores, rank[first].tolist(), first.tolist(), [0] * len(first), strict=True))
    heapq.heapify(heap)
    ahead = _Ahead(view, task, count, placement)
    places: list[int] = []
    while heap and len(places) < count:
        _, of_rank, node, has = heap[0]
        places.append(node)
        score = ahead.score(node, has + 1, heap)
        if score == -np.inf:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (-score, of_rank, node, has + 1))
    return places


class _Ahead:
    """Scores of nodes with tasks of the run on them, computed in advance.

    A pass costs little more for many nodes and tasks than for one. Each covers twice as many nodes as the previous one,
    and on each of them as many further tasks as the run has put on any node so far.
    """

    def __init__(self, view: ClassView, task: Task, count: int, placement: NodeSearch) -> None:
        self._view = view
        self._task = task
        self._count = count
        self._placement = placement
        self._known: dict[int, list[float]] = {}
        """By node: the score for the next task with 1, 2, … tasks of the run on the node."""
        self._width, self._depth = _WIDTH, _DEPTH

    def score(self, node: int, tasks: int, heap: list[_Entry]) -> float:
        """The score of a node with this number of tasks of the run; −inf: no further task fits.

        `heap`: which nodes come next.
        """
        known = self._known.get(node)
        if known is None or len(known) < tasks:
            self._depth = min(max(self._depth, tasks), self._count)
            self._look([node, *self._upcoming(heap)])
            self._width *= 2
        return self._known[node][tasks - 1]

    def _upcoming(self, heap: list[_Entry]) -> list[int]:
        """The nodes that come next and for which few further scores are computed."""
        most = min(self._width, 2 * self._count // self._depth)
        few = self._depth // 2
        first = heapq.nsmallest(most, heap)[1:]
        return [node for _, _, node, has in first if len(self._known.get(node, ())) - has <= few]

    def _look(self, nodes: list[int]) -> None:
        """Compute further scores of nodes."""
        depth = self._depth
        for node in nodes:
            self._known.setdefault(node, [])
        more = np.arange(1, depth + 1, dtype=np.float64)
        counts = np.concatenate([more + len(self._known[node]) for node in nodes])
        columns = np.repeat(np.array(nodes, dtype=np.intp), depth)
        p, cls = self._placement, self._task.spec_class
        numbers = FilledNodes(p.numbers, columns, counts, self._view.vector, cls.nonzero, p.kube_moves)
        p.passes += 1
        *_, scores = look(self._view, self._task, numbers, columns)
        found = scores.tolist()
        for i, node in enumerate(nodes):
            self._known[node] += found[i * depth : (i + 1) * depth]
