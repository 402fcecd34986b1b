"""How many nodes are evaluated for a pod. Kubernetes: numFeasibleNodesToFind, and the start of findNodesThatFitPod.

Scores over arrays of all nodes are cheap, so all nodes are compared unless `percentageOfNodesToScore` limits them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from volcano_py.scheduler.rules.arrays import Indices

_LEAST = 100
"""The least number of fitting nodes after which the search can end."""


class NodeSample:
    """The start and the end of the search for a pod's nodes. `percentage` 0: it evaluates all nodes."""

    def __init__(self, percentage: int) -> None:
        self._percentage = percentage
        self.start = 0
        """The index of the node where the next search begins."""

    def all_of(self, nodes: int) -> bool:
        """Whether the search covers all of this number of nodes."""
        return nodes < _LEAST or not self._percentage or nodes * self._percentage // 100 >= nodes

    def take(self, candidates: Indices, nodes: int, fits: Callable[[int], bool] | None = None) -> Indices:
        """The candidates that fit, in the order in which they were evaluated, not more than needed.

        `nodes`: the number of all nodes. `fits`: whether a candidate fits; None: all do.
        """
        limit = max(nodes * self._percentage // 100, _LEAST)
        if self.all_of(nodes) or limit >= nodes:
            return candidates if fits is None else np.array([i for i in candidates.tolist() if fits(i)], dtype=np.intp)
        start = self.start % nodes
        ahead = candidates >= start
        found: list[int] = []
        for i in np.concatenate((candidates[ahead], candidates[~ahead])).tolist():
            if fits is None or fits(i):
                found.append(i)
                if len(found) == limit:
                    self.start = (i + 1) % nodes
                    break
        return np.array(found, dtype=np.intp)
