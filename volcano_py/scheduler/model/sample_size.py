"""How many nodes that accept a task end the search. Volcano: CalculateNumOfFeasibleNodesToFind.

Used without the deviation every-node only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleSize:
    """The flags --minimum-feasible-nodes, --minimum-percentage-nodes-to-find and --percentage-nodes-to-find."""

    minimum: int = 100
    """In clusters up to this number all nodes are considered."""
    minimum_percentage: int = 5
    percentage: int = 0
    """0: less with more nodes, from 50 % down to the minimum."""

    def target(self, count: int) -> int:
        """How many accepting nodes end the search among `count` nodes."""
        if count <= self.minimum or self.percentage >= 100:
            return count
        percentage = self.percentage
        if percentage <= 0:
            percentage = max(50 - count // 125, self.minimum_percentage)
        return max(count * percentage // 100, self.minimum)


DEFAULT_SAMPLE = SampleSize()
"""Volcano's defaults."""
