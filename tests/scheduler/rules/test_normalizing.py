"""Scores relative to the highest, by both front ends' forms, against the formula of Kubernetes in whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.profile_plugin import to_highest
from volcano_py.scheduler.rules.normalizing import share_of_highest


def default_normalize_score(scores: list[int], reverse: bool) -> list[int]:
    """kube-scheduler's helper.DefaultNormalizeScore, with 100 as the highest score."""
    highest = max([0, *scores])
    if highest == 0:
        return [100] * len(scores) if reverse else scores
    found = [100 * score // highest for score in scores]
    return [100 - score for score in found] if reverse else found


@given(st.lists(st.one_of(st.integers(0, 12), st.integers(0, 10**6))), st.booleans())
def test_shares_are_those_of_kubernetes(scores: list[int], reverse: bool) -> None:
    expected = default_normalize_score(scores, reverse)
    assert share_of_highest(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == expected
    assert share_of_highest(np.array(scores, dtype=np.float64), reverse=reverse).tolist() == expected
    by_node = {f"n{i}": score for i, score in enumerate(scores)}
    to_highest(by_node, reverse=reverse)
    assert list(by_node.values()) == expected
