"""When and where a gang can start at the earliest, given what is expected to end and what is held for others.

Pure computation over arrays by resource and node. The gang's pods are placed largest first, on the nodes that are free
last: those that are free now serve other jobs until then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import inf

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from volcano_py.scheduler.framework.reservations.expected_ends import ExpectedEnds
from volcano_py.scheduler.model.resource import EPS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Members(Struct):
    """Equal pods of a gang."""

    needs: Floats
    """By resource."""
    rows: list[int]
    """The resources that must fit."""
    count: int
    nodes: Bools
    """Those that accept the pods, whatever runs there."""


class Reserved(Struct):
    """The nodes that are held for a job from a time on."""

    job: str
    start: float
    """When it can start at the latest, in seconds since the epoch."""
    until: float
    """When it is expected to end."""
    amounts: Floats
    """By resource and node."""

    @property
    def nodes(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.amounts.any(axis=0))


def earliest_start(
    job: str,
    gang: Sequence[Members],
    limit: float | None,
    now: float,
    idle: Floats,
    ends: ExpectedEnds,
    others: Sequence[Reserved],
    domains: Sequence[Bools] = (),
) -> Reserved | None:
    """The reservation of a gang; None: it is not expected to fit at any time.

    `idle`: what is free now. `domains`: the pods must be on nodes of one of these.
    """
    duration = inf if limit is None else limit
    times = sorted({now, *(t for t in ends.ends if t > now), *(o.until for o in others if now < o.until < inf)})
    if not times:
        return None

    def placed(time: float, beside: Sequence[Reserved]) -> Floats | None:
        free = idle + ends.freed(time, idle.shape[1])
        for other in beside:
            free -= other.amounts
        for domain in domains or [np.ones(idle.shape[1], dtype=bool)]:
            found = _place(gang, free, idle, domain)
            if found is not None:
                return found
        return None

    def latest_end(since: float, others: Sequence[Reserved]) -> float:
        """Until when the same reservations are in the way of a start as at a time."""
        changes = [t for o in others for t in (o.until, o.start - duration) if t > since]
        return min(changes, default=inf)

    begin = 0
    while begin < len(times):
        # while the same reservations of others are in the way, what is free only grows
        until = latest_end(times[begin], others)
        end = bisect_left(times, until, begin + 1)
        in_the_way = [o for o in others if o.until > times[begin] and o.start < times[begin] + duration]
        if placed(times[end - 1], in_the_way) is not None:
            at = bisect_left(times, True, begin, end, key=lambda t: placed(t, in_the_way) is not None)
            amounts = placed(times[at], in_the_way)
            assert amounts is not None
            return Reserved(job, times[at], times[at] + duration, amounts)
        begin = end
    return None


def _place(gang: Sequence[Members], free: Floats, idle: Floats, domain: Bools) -> Floats | None:
    """The amounts of a gang on its nodes; None: it does not fit."""
    free = free.copy()
    taken = np.zeros_like(free)
    largest = np.maximum(free.max(axis=1, initial=0.0), 1.0)
    for members in sorted(gang, key=lambda m: -float((m.needs / largest).max(initial=0.0))):
        rows = [row for row in members.rows if members.needs[row] > 0]
        fits = members.nodes & domain
        room = np.where(fits, float(members.count), 0.0)
        if rows:
            each = np.floor((free[rows] + EPS) / members.needs[rows][:, None]).min(axis=0)
            room = np.where(fits, np.clip(each, 0, members.count), 0.0)
        if room.sum() < members.count:
            return None
        share = (idle / largest[:, None]).sum(axis=0)
        order = np.argsort(np.where(room > 0, share, inf), kind="stable")
        before = np.cumsum(room[order]) - room[order]
        counts = np.zeros(len(room))
        counts[order] = np.clip(members.count - before, 0, room[order])
        free -= members.needs[:, None] * counts
        taken += members.needs[:, None] * counts
    return taken
