"""The number of accepting nodes after which the search ends. Volcano: CalculateNumOfFeasibleNodesToFind.

Used only without the deviation every-node.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleSize:
    """The flags --minimum-feasible-nodes, --minimum-percentage-nodes-to-find and --percentage-nodes-to-find."""

    minimum: int = 100
    """In clusters of up to this number of nodes all are considered."""
    minimum_percentage: int = 5
    percentage: int = 0
    """0: adaptive, from 50 % down to the minimum in larger clusters."""

    def target(self, count: int) -> int:
        """The number of accepting nodes that ends the search among `count` nodes."""
        if count <= self.minimum or self.percentage >= 100:
            return count
        percentage = self.percentage
        if percentage <= 0:
            percentage = max(50 - count // 125, self.minimum_percentage)
        return max(count * percentage // 100, self.minimum)


DEFAULT_SAMPLE = SampleSize()
"""Volcano's defaults."""
