"""Figures of a replayed trace that look at each moment of it: shares of users, and capacity that is held and idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from volcano_py.scheduler.framework.reservations.earliest_start import Reserved
from volcano_py.simulate.trace.jobs import TraceJob

HALF_LIFE = 86_400.0
"""Seconds after which usage counts half."""
STEP = 3600.0
_MOST = 400
"""Moments at which shares are compared; a longer trace has longer steps."""


def jain_of_usage(
    jobs: Sequence[TraceJob],
    started: Mapping[str, float],
    ended: Mapping[str, float],
    capacity: Mapping[str, int],
) -> list[float]:
    """Jain's index of what users have used, decayed, at each moment after the first half-life at which each user has
    jobs that wait: only then is an unequal use the scheduler's choice."""
    rows: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    last = max(ended.values(), default=0.0)
    for job in jobs:
        share = max((job.pods * job.requests.get(r, 0) / have for r, have in capacity.items() if have), default=0.0)
        start = started.get(job.name, np.inf)
        rows[job.user].append((job.submitted, start, ended.get(job.name, last) if start < np.inf else np.inf, share))
    if len(rows) < 2 or last <= HALF_LIFE:
        return []
    moments = np.arange(HALF_LIFE, last, max(STEP, last / _MOST))
    rate, used, waits = log(2) / HALF_LIFE, [], []
    for user in sorted(rows):
        submitted, start, end, share = (column[:, None] for column in np.array(rows[user]).T)
        waits.append(((submitted <= moments) & (moments < start)).any(axis=0))
        since = np.maximum(0.0, moments - np.minimum(start, moments))
        until = np.maximum(0.0, moments - np.minimum(end, moments))
        used.append((share * (np.exp(-rate * until) - np.exp(-rate * since))).sum(axis=0))
    at = np.all(waits, axis=0)
    of = np.array(used)[:, at]
    squares = len(of) * (of**2).sum(axis=0)
    total = of.sum(axis=0) ** 2
    return [float(t / s) for t, s in zip(total, squares, strict=True) if s > 0]


def held_idle(
    reserved: Sequence[Reserved], row: int | None, columns: Mapping[int, int], free: Sequence[float]
) -> float:
    """How much of a resource is idle and held: on each node at most what is reserved there. `columns`: by node of the
    reservations, its index in `free`."""
    if row is None or not reserved:
        return 0.0
    amounts: dict[int, float] = defaultdict(float)
    for held in reserved:
        for node in held.nodes.tolist():
            amounts[node] = max(amounts[node], float(held.amounts[row, node]))
    return sum(min(amount, float(free[columns[node]])) for node, amount in amounts.items())
