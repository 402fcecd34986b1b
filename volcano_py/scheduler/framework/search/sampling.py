"""Sampling of nodes: where the search for nodes begins and ends. Volcano: PredicateHelper.

By default every node is considered (deviation every-node), because an array search costs the same. Without the
deviation the search ends after a number of nodes, and the next one begins where it ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


@dataclass
class Rotation:
    """Where the next search begins: kept between sessions."""

    start: int = 0

    def sample(self, accepted: Bools, target: int) -> Bools:
        """The first `target` accepted nodes from the start, with wrap-around; the next search begins after them."""
        count = len(accepted)
        if target >= count:
            return accepted
        order = (np.arange(count) + self.start % count) % count
        found = np.flatnonzero(accepted[order])
        # Volcano stops at the first node beyond the target, which is not part of the sample.
        processed = int(found[target]) + 1 if len(found) > target else count
        sampled = np.zeros(count, dtype=bool)
        sampled[order[found[:target]]] = True
        self.start = (self.start + processed) % count
        return sampled
