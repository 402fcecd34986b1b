"""Decayed usage: what each owner of each queue has held, where what is a half-life ago counts half.

A unit is the whole cluster for one second, by the dominant resource. Usage accrues between two sessions by what the
first of them left allocated. A clock that jumps back accrues nothing; after a pause of more than `LONGEST_GAP`, only so
much accrues, but all of the time decays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, log
from typing import NamedTuple

LONGEST_GAP = 600.0
"""Seconds between two sessions for which allocations count; sessions are at most a minute apart."""
_LEAST = 1e-9
"""Usage below this is forgotten."""


class Owner(NamedTuple):
    queue: str
    name: str


@dataclass
class Usage:
    """The state between sessions."""

    used: dict[Owner, float] = field(default_factory=dict)
    held: dict[Owner, float] = field(default_factory=dict)
    """The share of the cluster that each holds since `at`."""
    at: float | None = None
    """In seconds since the epoch; None: nothing is known yet."""

    def advance(self, now: float, half_life: float, held: Mapping[Owner, float]) -> None:
        """Accrue until now, and continue with what is held now."""
        if self.at is not None and now > self.at:
            rate = log(2) / half_life
            counted = min(now - self.at, LONGEST_GAP)
            kept = exp(-rate * (now - self.at))
            gained = (1 - exp(-rate * counted)) / rate
            used = {owner: amount * kept for owner, amount in self.used.items()}
            for owner, share in self.held.items():
                used[owner] = used.get(owner, 0.0) + share * gained
            self.used = {owner: amount for owner, amount in used.items() if amount > _LEAST}
        self.at = now
        self.held = dict(held)

    def begin(self, now: float, half_life: float, running: Iterable[tuple[Owner, float, float]]) -> None:
        """After a restart: the usage of what still runs, since its start. `running`: owner, share, start."""
        rate = log(2) / half_life
        for owner, share, started in running:
            gained = (1 - exp(-rate * max(0.0, now - started))) / rate
            self.used[owner] = self.used.get(owner, 0.0) + share * gained
        self.at = now
