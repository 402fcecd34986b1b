"""Normalizing scores to 0–100. Kubernetes: helper.DefaultNormalizeScore."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.profiles.plugin_api.extension_points import MAX_SCORE
from volcano_py.scheduler.rules.arrays import Ints


def to_highest(scores: dict[str, int], *, reverse: bool) -> None:
    """In place: the highest score becomes 100, or 0 if `reverse`; the others in proportion."""
    top = max(scores.values(), default=0)
    for node, value in scores.items():
        share = MAX_SCORE * value // top if top else 0
        scores[node] = MAX_SCORE - share if reverse else share


def columns_to_highest(scores: Ints, *, reverse: bool) -> Ints:
    """The same for an array."""
    top = scores.max(initial=0)
    share = MAX_SCORE * scores // top if top else np.zeros_like(scores)
    return MAX_SCORE - share if reverse else share
