"""Feasible: the results of the filters for one pod. Kubernetes: the result of findNodesThatFitPod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from volcano_py.scheduler.profiles.attempts.class_views import PodClassView
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.faults import contained
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.scheduler.rules.arrays import Bools, Indices


class Feasible:
    """The nodes that fit a pod: `ok` by column, or `nodes` in the order in which they were evaluated.

    `rejected`: why other nodes do not fit, as far as that is already computed.
    """

    __slots__ = ("_nodes", "count", "ok", "rejected", "view")

    def __init__(
        self, view: PodClassView, ok: Bools, rejected: Mapping[str, Status] = {}, nodes: Indices | None = None
    ) -> None:
        self.view = view
        self.ok = ok
        self.rejected = rejected
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
        """Whether all nodes were evaluated, in their order."""
        return self._nodes is None


def fitting(
    filters: Sequence[Filter], state: CycleState, pod: PodInfo, columns: Columns, ok: Bools
) -> tuple[Bools, bool]:
    """Those of the nodes that are `ok` which filters of the scope DOMAIN accept, in a new array, and whether all of
    these filters have an array form for the pod."""
    complete, fits = True, ok.copy()
    for f in filters:
        with contained(f.name, "Filter"):
            found = f.filter_fitting(state, pod, columns, fits)
        if found is None:
            complete = False
        else:
            fits = fits & found
    return fits, complete
