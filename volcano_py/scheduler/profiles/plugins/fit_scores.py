"""The scoring strategies of NodeResourcesFit. Kubernetes: least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go.

`uses`: one (used with the pod, capacity, weight) per resource that the node has.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from volcano_py.scheduler.noderules.score_line import Point, on_line
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE

Use = tuple[int, int, int]


class ResourceWeight(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    weight: int = 1


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


def _mean(scores: Sequence[tuple[int, int]]) -> int:
    weights = sum(w for _, w in scores)
    return sum(s * w for s, w in scores) // weights if weights else 0
