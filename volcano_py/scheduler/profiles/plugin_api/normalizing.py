"""Normalizing for plugins that score node by node. Kubernetes: helper.DefaultNormalizeScore."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.rules.normalizing import share_of_highest


def to_highest(scores: dict[str, int], *, reverse: bool) -> None:
    """In place: the highest score becomes 100, or 0 if `reverse`; the others in proportion, rounded down."""
    raw = np.fromiter(scores.values(), dtype=np.int64, count=len(scores))
    scores.update(zip(scores, map(int, share_of_highest(raw, reverse=reverse).tolist()), strict=True))
