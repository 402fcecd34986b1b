"""Observations: what profiles report of their work, for metrics. Kubernetes: scheduler/metrics.

Profiles have no clock: an observer that measures durations does so around the blocks of `preemption` and `placement`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class SeenPreemption:
    """One search for victims."""

    def __init__(self) -> None:
        self.result = "Error"
        """The code of the plugin's status."""
        self.victims = 0
        self.units = 0
        """Single pods, and groups that are evicted as a whole."""
        self.violations = 0
        """Victims whose eviction breaks a PodDisruptionBudget."""


class SeenPlacement:
    """One placement of a group that was tried."""

    feasible = False


class Observations(Protocol):
    def preemption(self, *, by_group: bool) -> AbstractContextManager[SeenPreemption]:
        """Victims are searched for a pod, or for a group."""

    def placements(self, profile: str, count: int) -> None:
        """A group has a number of placements."""

    def placement(self, profile: str) -> AbstractContextManager[SeenPlacement]:
        """A group is tried in a placement."""


class Unobserved:
    """No observer."""

    @contextmanager
    def preemption(self, *, by_group: bool) -> Iterator[SeenPreemption]:
        yield SeenPreemption()

    def placements(self, profile: str, count: int) -> None: ...

    @contextmanager
    def placement(self, profile: str) -> Iterator[SeenPlacement]:
        yield SeenPlacement()
