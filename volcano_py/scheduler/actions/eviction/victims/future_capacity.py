"""What will be free on every node after releasing tasks are deleted and pipelined ones have started, updated for the
nodes that changed. Volcano: NodeInfo.FutureIdle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session

Floats = NDArray[np.float64]
_FEW = 16
"""Up to this number of changed nodes are computed one by one."""


class FutureCapacity:
    """The amounts of all nodes, [resources x nodes], up to a position in the log of changed columns."""

    def __init__(self, session: Session) -> None:
        self._numbers = session.numbers
        self._position = -1
        self._amounts: Floats = np.zeros((0, 0))

    def amounts(self) -> Floats:
        """Not to be changed; updated by the next call."""
        n = self._numbers
        if self._position < 0:
            self._amounts = n.future_idle()
        elif self._position != n.log.position:
            nodes = n.log.since(self._position)
            for node in nodes if len(nodes) <= _FEW else [nodes]:
                self._amounts[:, node] = n.idle[:, node] + n.releasing[:, node] - n.pipelined[:, node]
        self._position = n.log.position
        return self._amounts
