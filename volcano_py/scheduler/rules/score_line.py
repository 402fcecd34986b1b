"""A line from utilization to score, as configured by `shape`. Kubernetes: BuildBrokenLinearFunction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_SHAPE_STEP = 10
"""Scores of a shape are 0 to 10."""


class LinePoint(msgspec.Struct, forbid_unknown_fields=True):
    """A point of the line from utilisation (0–100) to score (0–10)."""

    utilization: int = 0
    score: int = 0


def on_line(shape: Sequence[LinePoint], utilization: int) -> int:
    """The score at a utilisation, times ten."""
    for i, point in enumerate(shape):
        if utilization <= point.utilization:
            if i == 0:
                return point.score * _SHAPE_STEP
            before = shape[i - 1]
            rise = (point.score - before.score) * _SHAPE_STEP * (utilization - before.utilization)
            return before.score * _SHAPE_STEP + _toward_zero(rise, point.utilization - before.utilization)
    return shape[-1].score * _SHAPE_STEP if shape else 0


def _toward_zero(a: int, b: int) -> int:
    """Integer division as in Go, for a positive `b`."""
    return a // b if a >= 0 else -(-a // b)
