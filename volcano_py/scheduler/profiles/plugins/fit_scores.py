"""The scoring strategies of NodeResourcesFit. Kubernetes: least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go.

`uses`: one (used with the pod, capacity, weight) per resource that the node has.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from volcano_py.scheduler.profiles.extension_points import MAX_SCORE

Use = tuple[int, int, int]
_SHAPE_STEP = 10
"""Scores of a shape are 0 to 10."""


class ResourceWeight(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    weight: int = 1


class Point(msgspec.Struct, forbid_unknown_fields=True):
    """A point of the line from utilisation (0–100) to score (0–10)."""

    utilization: int = 0
    score: int = 0


def least(uses: Sequence[Use]) -> int:
    """Nodes with more free capacity score higher."""
    return _mean([(0 if used > cap else (cap - used) * MAX_SCORE // cap, w) for used, cap, w in uses])


def most(uses: Sequence[Use]) -> int:
    """Nodes with less free capacity score higher."""
    return _mean([(min(used, cap) * MAX_SCORE // cap, w) for used, cap, w in uses])


def ratio(uses: Sequence[Use], shape: Sequence[Point]) -> int:
    """By a piecewise linear function; resources with score 0 do not count."""
    total = weights = 0
    for used, cap, weight in uses:
        score = on_line(shape, 100 if used > cap else used * 100 // cap)
        if score > 0:
            total, weights = total + score * weight, weights + weight
    return (2 * total + weights) // (2 * weights) if weights else 0


def on_line(shape: Sequence[Point], utilization: int) -> int:
    """The score at a utilisation, times ten."""
    for i, point in enumerate(shape):
        if utilization <= point.utilization:
            if i == 0:
                return point.score * _SHAPE_STEP
            before = shape[i - 1]
            rise = (point.score - before.score) * _SHAPE_STEP * (utilization - before.utilization)
            return before.score * _SHAPE_STEP + toward_zero(rise, point.utilization - before.utilization)
    return shape[-1].score * _SHAPE_STEP if shape else 0


def toward_zero(a: int, b: int) -> int:
    """Integer division as in Go, for a positive `b`."""
    return a // b if a >= 0 else -(-a // b)


def _mean(scores: Sequence[tuple[int, int]]) -> int:
    weights = sum(w for _, w in scores)
    return sum(s * w for s, w in scores) // weights if weights else 0
