"""The scoring strategies of NodeResourcesFit over arrays of nodes; the same arithmetic as `fit_scores`.

`uses`: one (used with the pod, capacity, weight) per resource; nodes with capacity 0 do not have the resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from volcano_py.scheduler.noderules.score_line import Point, on_line
from volcano_py.scheduler.profiles.columns import Bools, Ints
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE

ColumnUse = tuple[Ints, Ints, int]


def least_columns(uses: Sequence[ColumnUse], count: int) -> Ints:
    """Nodes with more free capacity score higher."""
    free = ((np.maximum(c - u, 0) * MAX_SCORE // c, has, w) for u, c, has, w in _with_capacity(uses))
    return _mean(free, count)


def most_columns(uses: Sequence[ColumnUse], count: int) -> Ints:
    """Nodes with less free capacity score higher."""
    return _mean(((np.minimum(u, c) * MAX_SCORE // c, has, w) for u, c, has, w in _with_capacity(uses)), count)


def ratio_columns(uses: Sequence[ColumnUse], shape: Sequence[Point], count: int) -> Ints:
    """By a piecewise linear function; resources with score 0 do not count."""
    line = np.array([on_line(shape, percent) for percent in range(101)], dtype=np.int64)
    total: Ints = np.zeros(count, dtype=np.int64)
    weights: Ints = np.zeros(count, dtype=np.int64)
    for used, capacity, has, weight in _with_capacity(uses):
        score = line[np.minimum(used, capacity) * 100 // capacity]
        counts = has & (score > 0)
        total += np.where(counts, score * weight, 0)
        weights += np.where(counts, weight, 0)
    some = np.maximum(weights, 1)
    found: Ints = np.where(weights > 0, (2 * total + some) // (2 * some), 0)
    return found


def _with_capacity(uses: Sequence[ColumnUse]) -> Iterator[tuple[Ints, Ints, Bools, int]]:
    """(used, capacity or 1, whether there is capacity, weight)."""
    for used, capacity, weight in uses:
        yield used, np.maximum(capacity, 1), capacity > 0, weight


def _mean(scores: Iterator[tuple[Ints, Bools, int]], count: int) -> Ints:
    total: Ints = np.zeros(count, dtype=np.int64)
    weights: Ints = np.zeros(count, dtype=np.int64)
    for score, has, weight in scores:
        total += np.where(has, score * weight, 0)
        weights += np.where(has, weight, 0)
    found: Ints = np.where(weights > 0, total // np.maximum(weights, 1), 0)
    return found
