"""When and where a gang can start at the earliest, given what is expected to end and what is held for others.

Pure computation over arrays by resource and node. The gang's pods are placed largest first, on the nodes that are free
last: those that are free now serve other jobs until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf, nextafter

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from volcano_py.scheduler.framework.reservations.expected_ends import ExpectedEnds
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class GangMembers(Struct):
    """Equal pods of a gang."""

    needs: Floats
    """By resource."""
    rows: list[int]
    """The resources that must fit."""
    opens: Floats
    """By node: from when on it accepts the pods; −inf: now, whatever runs there; inf: never."""
    tasks: Sequence[Task]
    """The pods."""
    limited: bool = False
    """Whether more than resources limits how many of them a node holds."""
    most: Floats = field(default_factory=lambda: np.array([inf]))
    """By node, or for all: how many of the pods it accepts at most."""

    @property
    def count(self) -> int:
        return len(self.tasks)

    def same_as(self, other: GangMembers) -> bool:
        """Whether they are equal but for what trials have found."""
        return (
            self.count == other.count
            and self.rows == other.rows
            and np.array_equal(self.needs, other.needs)
            and np.array_equal(self.opens, other.opens)
        )


class Reserved(Struct, dict=True):
    """The nodes that are held for a job from a time on."""

    job: str
    start: float
    """When it can start at the latest, in seconds since the epoch."""
    until: float
    """When it is expected to end."""
    amounts: Floats
    """By resource and node."""
    pods: list[Floats] = field(default_factory=list)
    """Of each class of the gang's pods: how many there are on each node."""

    @cached_property
    def nodes(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.amounts.any(axis=0))


def earliest_start(
    job: str,
    gang: Sequence[GangMembers],
    limit: float | None,
    now: float,
    idle: Floats,
    ends: ExpectedEnds,
    others: Sequence[Reserved],
    domains: Sequence[Bools] = (),
    near: float | None = None,
    after: float | None = None,
) -> Reserved | None:
    """The reservation of a gang; None: it is not expected to fit at any time.

    `after`: it must not start before this time. `idle`: what is free now. `domains`: the pods must be on nodes of one
    of these. `near`: a time near which the start probably is, such as that of an earlier reservation; the result for
    equal pods does not depend on it.
    """
    duration = inf if limit is None else limit
    known, first = np.array(ends.ends), max(now, now if after is None else after)
    further = [first, *(o.until for o in others if first < o.until < inf)]
    times = np.unique(np.concatenate([known[np.searchsorted(known, first, side="right") :], further]))
    everywhere = np.ones(idle.shape[1], dtype=bool)

    def placed(time: float, beside: Sequence[Reserved]) -> list[Floats] | None:
        free = idle + ends.freed(time, idle.shape[1])
        for other in beside:
            free[:, other.nodes] -= other.amounts[:, other.nodes]
        for domain in domains or [everywhere]:
            found = _place(gang, free, idle, domain, time)
            if found is not None:
                return found
        return None

    begin = 0
    while begin < len(times):
        # while the same reservations of others are in the way, what is free only grows
        since = float(times[begin])
        in_the_way = [o for o in others if o.until > since and o.start < since + duration]
        end = max(begin + 1, int(np.searchsorted(times, _same_until(since, duration, others))))
        if placed(float(times[end - 1]), in_the_way) is not None:
            at = _first(times, begin, end - 1, near, lambda time, o=in_the_way: placed(time, o) is not None)  # type: ignore[misc]
            start = float(times[at])
            pods = placed(start, in_the_way)
            assert pods is not None
            amounts = sum(
                (m.needs[:, None] * counts for m, counts in zip(gang, pods, strict=True)), np.zeros_like(idle)
            )
            return Reserved(job, start, start + duration, amounts, pods)
        begin = end
    return None


def _same_until(since: float, duration: float, others: Sequence[Reserved]) -> float:
    """The first time at which others are in the way of a start than at `since`."""
    found = inf
    for other in others:
        if other.until > since:
            found = min(found, other.until)
        if other.start - duration >= since:  # after this time it is in the way
            found = min(found, nextafter(other.start - duration, inf))
    return found


def _first(times: Floats, begin: int, last: int, near: float | None, fits: Callable[[float], bool]) -> int:
    """The first index at which the gang fits, where it fits at `last` and at all after the first."""
    low, high = begin, last
    if near is not None:
        guess = min(max(begin, int(np.searchsorted(times, near))), last)
        step = 1
        if fits(float(times[guess])):
            high = guess
            while high > low and fits(float(times[max(low, high - step)])):
                high, step = max(low, high - step), step * 4
            low = min(high, max(low, high - step) + 1)
        else:
            low = guess + 1
            while low < high and not fits(float(times[min(high, low + step - 1)])):
                low, step = min(high, low + step), step * 4
            high = min(high, low + step - 1)
    while low < high:
        middle = (low + high) // 2
        if fits(float(times[middle])):
            high = middle
        else:
            low = middle + 1
    return low


def _place(gang: Sequence[GangMembers], free: Floats, idle: Floats, domain: Bools, time: float) -> list[Floats] | None:
    """How many pods of each class are on each node; None: the gang does not fit."""
    free = free.copy()
    pods = [np.zeros(free.shape[1]) for _ in gang]
    largest = np.maximum(free.max(axis=1, initial=0.0), 1.0)
    for i in sorted(range(len(gang)), key=lambda i: -float((gang[i].needs / largest).max(initial=0.0))):
        members = gang[i]
        rows = [row for row in members.rows if members.needs[row] > 0]
        fits = domain & (members.opens <= time)
        room = np.where(fits, np.minimum(members.most, members.count), 0.0)
        if rows:
            each = np.floor((free[rows] + EPS) / members.needs[rows][:, None]).min(axis=0)
            room = np.minimum(room, np.maximum(each, 0.0))
        if room.sum() < members.count:
            return None
        fitting = np.flatnonzero(room)
        share = (idle[:, fitting] / largest[:, None]).sum(axis=0)
        order = fitting[np.argsort(share, kind="stable")]
        before = np.cumsum(room[order]) - room[order]
        used = order[before < members.count]
        pods[i][used] = np.minimum(members.count - before[: len(used)], room[used])
        free[:, used] -= members.needs[:, None] * pods[i][used]
    return pods
