"""Decayed usage: what each owner of each queue has held, where what is a half-life ago counts half.

A unit is the whole cluster for one second, by the dominant resource. Usage accrues between two sessions by what the
first of them left allocated. A clock that jumps back accrues nothing; after a pause of more than `LONGEST_GAP`, only so
much accrues, but all of the time decays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, isfinite, log
from typing import Any, NamedTuple

import msgspec

LONGEST_GAP = 600.0
"""Seconds between two sessions for which allocations count; sessions are at most a minute apart."""
_LEAST = 1e-9
"""Usage below this is forgotten."""


STORED = 2_000
"""The owners with the largest usage are stored."""


class OwnerUsage(msgspec.Struct):
    """What is stored of an owner."""

    queue: str
    owner: str
    used: float
    held: float = 0.0
    weight: float = 1.0


class UsageDocument(msgspec.Struct, rename="camel"):
    """What is stored: the usage at a time, and what `vcctl fairshare` shows the order by."""

    at: float
    ahead: float = 0.0
    half_life: float = 0.0
    owners: list[OwnerUsage] = []


class Owner(NamedTuple):
    queue: str
    name: str


@dataclass
class DecayedUsage:
    """The state between sessions."""

    used: dict[Owner, float] = field(default_factory=dict)
    held: dict[Owner, float] = field(default_factory=dict)
    """The share of the cluster that each holds since `at`."""
    at: float | None = None
    """In seconds since the epoch; None: nothing is known yet."""
    weights: Mapping[str, float] = field(default_factory=dict)
    ahead: float = 0.0
    half_life: float = 0.0
    """The last three as the plugin has them."""

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

    # ---- over restarts -------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """See `framework.reservations.history`."""
        both = {owner: self.used.get(owner, 0.0) for owner in (*self.used, *self.held)}
        most = sorted(both, key=lambda owner: (-both[owner], owner))[:STORED]
        owners = [
            OwnerUsage(
                owner.queue,
                owner.name,
                round(both[owner], 3),
                round(self.held.get(owner, 0.0), 9),
                self.weights.get(owner.name, 1.0),
            )
            for owner in sorted(most)
        ]
        found: dict[str, Any] = msgspec.to_builtins(UsageDocument(self.at or 0.0, self.ahead, self.half_life, owners))
        return found

    def load(self, document: Any, now: float) -> str:
        """Replace the usage by a document; returns what is wrong with it, and nothing is known then."""
        self.used, self.held, self.at = {}, {}, None
        try:
            read = msgspec.convert(document, UsageDocument)
            for each in read.owners:
                if not (isfinite(each.used) and each.used >= 0 and isfinite(each.held) and each.held >= 0):
                    raise ValueError(f"the usage of {each.owner} in queue {each.queue} is negative or not finite")
            if not isfinite(read.at) or read.at <= 0:
                raise ValueError(f"its time is {read.at}, and must be in seconds since the epoch")
        except (msgspec.ValidationError, ValueError) as error:
            return str(error)
        for each in read.owners:
            owner = Owner(each.queue, each.owner)
            self.used[owner], self.held[owner] = each.used, each.held
        self.at = min(read.at, now)  # of a clock that was ahead, nothing accrues
        return ""
