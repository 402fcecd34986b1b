"""The scheduler's reports and nominations in the API server, including those that were sent and are not confirmed yet.

A report is repeated only when it changes; a nomination keeps the capacity that was freed for a pod. Events from the API
server and assumed plans change both. Volcano: podStatusUnscheduled and the nominator of its cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

NOMINATION_SECONDS = 300.0
"""Seconds for which freed capacity is kept for a pod: pods with long grace periods need that time to terminate."""


@dataclass
class Reported:
    """The last report about each object."""

    conditions: dict[str, tuple[str, str]] = field(default_factory=dict)
    """PodScheduled=False: task key → (reason, message)."""
    events: dict[tuple[str, str], str] = field(default_factory=dict)
    """The last Event message: (kind, key) → message."""
    gates_removed: dict[str, str] = field(default_factory=dict)
    """Pods whose queue gate is being removed: task key → UID."""


@dataclass
class Nominations:
    """Nodes on which pods were evicted for pending pods."""

    node_of: dict[str, str] = field(default_factory=dict)
    """Task key → node; only `put` and `drop` change it."""
    at: dict[str, dict[str, None]] = field(default_factory=dict)
    """Node → the keys of the tasks that are nominated to it."""
    since: dict[str, float] = field(default_factory=dict)
    """When a session first used the nomination, in seconds since the epoch."""

    def put(self, key: str, node: str) -> None:
        """Nominate a task to a node."""
        self.drop(key)
        self.node_of[key] = node
        self.at.setdefault(node, {})[key] = None

    def drop(self, key: str) -> str:
        """End a task's nomination; returns the node, empty if there was none."""
        node = self.node_of.pop(key, "")
        if node:
            here = self.at[node]
            del here[key]
            if not here:
                del self.at[node]
        return node

    def grow_older(self, now: float) -> None:
        """Note when each nomination was first present; a clock that goes back counts as time that has not passed."""
        for key in [key for key in self.since if key not in self.node_of]:
            del self.since[key]
        for key in self.node_of:
            self.since[key] = min(self.since.get(key, now), now)

    def expired(self, now: float) -> list[str]:
        """The tasks whose nomination is too old to keep capacity, by key."""
        return [key for key in self.node_of if now - self.since[key] > NOMINATION_SECONDS]


class Rounds(NamedTuple):
    """The rounds of evictions of a job, after each of which it had no more ready tasks in the end than before."""

    number: int
    ready: int
    """The job's ready tasks at the last round."""
    at: float
    """The time of the last round, in seconds since the epoch."""


@dataclass
class EvictionRounds:
    """Evictions by the job that they were for, from one session to the next."""

    of_job: dict[str, Rounds] = field(default_factory=dict)
