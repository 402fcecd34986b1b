"""SomeNodes: the numbers of some nodes, gathered from those of all nodes. Volcano: has none, it reads NodeInfo.

Rules evaluate them as the numbers of all nodes: the arrays have the same names and fewer columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.nodes.node_table import Floats, NodeNumbers


class SomeNodes:
    """The numbers of some nodes."""

    allocatable: Floats
    idle: Floats
    used: Floats
    releasing: Floats
    pipelined: Floats
    kube_requested: Floats
    kube_nonzero: Floats
    kube_capacity: Floats
    max_pods: Floats
    kube_pods: Floats

    def __init__(self, numbers: NodeNumbers, nodes: NDArray[np.intp]) -> None:
        self.where = numbers.where
        self.matrix: Floats = numbers.matrix.take(nodes, axis=1)
        self.nodes = nodes
        """Their columns in the table."""

    def __getattr__(self, name: str) -> Floats:
        own: Floats = self.matrix[self.where[name]]
        setattr(self, name, own)
        return own


class FilledNodes(SomeNodes):
    """The numbers of some nodes as they would be with more tasks of one class on them.

    `counts`: the number of additional tasks, for each of `nodes`; a node may occur several times. `request`, `nonzero`:
    what one task adds. `kube`: whether kube-scheduler's view of the nodes follows the session.
    """

    def __init__(
        self,
        numbers: NodeNumbers,
        nodes: NDArray[np.intp],
        counts: Floats,
        request: Floats,
        nonzero: Floats,
        kube: bool,
    ) -> None:
        super().__init__(numbers, nodes)
        more = request[:, None] * counts
        self.idle -= more
        self.used += more
        if kube:
            self.kube_requested += more
            self.kube_nonzero += nonzero[:, None] * counts
            self.kube_pods += counts


Numbers = NodeNumbers | SomeNodes
"""All nodes or some: arrays of one shape; rules use only that."""
