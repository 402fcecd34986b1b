"""Bringing scores to 0–100. Kubernetes: helper.DefaultNormalizeScore."""

from __future__ import annotations

from volcano_py.scheduler.profiles.extension_points import MAX_SCORE


def to_highest(scores: dict[str, int], *, reverse: bool) -> None:
    """In place: the highest score becomes 100, or 0 if `reverse`; the others in proportion."""
    top = max(scores.values(), default=0)
    for node, value in scores.items():
        share = MAX_SCORE * value // top if top else 0
        scores[node] = MAX_SCORE - share if reverse else share
