"""Plans of reservations: what each was computed from, so that it is kept while that is the same. Not in Volcano."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers, Reserved
from volcano_py.scheduler.framework.reservations.expected_ends import ExpectedEnds

Floats = NDArray[np.float64]


class ReservationPlan(Struct):
    """A reservation, and what it was computed from."""

    reserved: Reserved | None
    at: float
    """When."""
    ends: ExpectedEnds
    idle: Floats
    gang: list[GangMembers]
    limit: float | None
    domains: list[NDArray[np.bool_]]
    after: float
    """The time from which on the queue may use what the gang requests."""
    before: list[Reserved]
    """The reservations that come first."""

    def holds(self, now: float, of: ReservationPlan) -> bool:
        """Whether a plan from what another one is computed from would be the same: nothing has changed but the time,
        which is still before the start."""
        return (
            self.reserved is not None
            and self.at <= now < self.reserved.start
            and self.ends is of.ends
            and self.limit == of.limit
            and (self.after == of.after or max(self.after, of.after) <= now)
            and len(self.before) == len(of.before)
            and all(a is b for a, b in zip(self.before, of.before, strict=True))
            and np.array_equal(self.idle, of.idle)
            and len(self.gang) == len(of.gang)
            and all(a.same_as(b) for a, b in zip(self.gang, of.gang, strict=True))
            and len(self.domains) == len(of.domains)
            and all(np.array_equal(a, b) for a, b in zip(self.domains, of.domains, strict=True))
        )


@dataclass
class KeptReservations:
    """What a session leaves to the next one: since when each job has a reservation."""

    since: dict[str, float] = field(default_factory=dict)
    reserved: list[Reserved] = field(default_factory=list)
    """The last ones, for figures."""
    plans: dict[str, ReservationPlan] = field(default_factory=dict)
    """By job: those of the last session."""
