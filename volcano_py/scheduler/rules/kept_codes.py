"""Codes of nodes that are kept while a session changes: computed again for those nodes that a log names.

The books of volumes and of devices have such a log: what a placement reserves there changes few nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from volcano_py.scheduler.rules.arrays import Codes

EVERYWHERE = -1
"""An entry of the log: any node may have changed. Other entries are columns of nodes, in the order of the changes."""


class KeptCodes:
    """The codes for each class of pods."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._known: dict[int, tuple[Codes, int]] = {}
        """By class: the codes, and the length of the log that they include."""

    def of(self, class_id: int, log: Sequence[int], decide: Callable[[int], int]) -> Codes:
        """The codes for a class. `decide`: the code of one node for it."""
        codes, position = self._known.get(class_id, (None, 0))
        changed = set(log[position:])
        if codes is None or EVERYWHERE in changed:
            codes = np.zeros(self._nodes, dtype=np.int8)
            changed = set(range(self._nodes))
        for node in changed:
            codes[node] = decide(node)
        self._known[class_id] = (codes, len(log))
        return codes
