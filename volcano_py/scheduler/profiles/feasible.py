"""Feasible: what the filters have found for one pod. Kubernetes: the result of findNodesThatFitPod."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from volcano_py.scheduler.profiles.class_views import ClassView
from volcano_py.scheduler.profiles.columns import Bools, Indices
from volcano_py.scheduler.profiles.status import Status


class Feasible:
    """The nodes that fit a pod: `ok` by column, or `nodes` in the order in which they were looked at.

    `refused`: why others do not fit, as far as that is known already.
    """

    __slots__ = ("_nodes", "count", "ok", "refused", "view")

    def __init__(
        self, view: ClassView, ok: Bools, refused: Mapping[str, Status] = {}, nodes: Indices | None = None
    ) -> None:
        self.view = view
        self.ok = ok
        self.refused = refused
        self.count = int(np.count_nonzero(ok)) if nodes is None else len(nodes)
        self._nodes = nodes

    @property
    def nodes(self) -> Indices:
        """Columns."""
        if self._nodes is None:
            self._nodes = np.flatnonzero(self.ok)
        return self._nodes

    @property
    def in_order(self) -> bool:
        """All nodes were looked at, in their order."""
        return self._nodes is None
