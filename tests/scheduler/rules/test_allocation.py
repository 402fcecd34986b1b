"""The rules about the used part of nodes: amounts to scores, in both forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from volcano_py.scheduler.rules.allocation import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    balance,
    balances,
    evenness,
    evennesses,
    mean,
    mean_of_two,
    means,
    ratio,
    ratios,
)
from volcano_py.scheduler.rules.score_line import LinePoint, on_line

TIB = 1 << 40
SHAPE = [LinePoint(0, 10), LinePoint(30, 0), LinePoint(100, 7)]
TABLE = {
    # (used with the pod, capacity, weight) of each resource: least, most, ratio
    "empty": ([(0, 4000, 1), (0, 8, 1)], 100, 0, 100),
    "half": ([(2000, 4000, 1), (4, 8, 1)], 50, 50, 20),
    "full": ([(4000, 4000, 1), (8, 8, 1)], 0, 100, 70),
    "more than full": ([(4001, 4000, 1), (80, 8, 1)], 0, 100, 70),
    "each resource is rounded down": ([(1, 3, 1), (1, 3, 1)], 66, 33, 3),
    "and the mean": ([(1, 3, 1), (2, 3, 1)], 49, 49, 20),  # 66 and 33, 33 and 66, 3 and 36: 19.5 is rounded
    "weights": ([(1, 4, 3), (4, 4, 1)], 56, 43, 30),  # 75·3 + 0, 25·3 + 100, 17·3 + 70: 30.25
    "a resource that the node does not have": ([(5, 0, 9), (1, 4, 2)], 75, 25, 17),
    "no resource that the node has": ([(5, 0, 1), (0, 0, 1)], 0, 0, 0),
    "none": ([], 0, 0, 0),
    "a score of 0 does not count for the ratio": ([(3, 10, 1), (10, 10, 1)], 35, 65, 70),
    "large amounts": ([(TIB - 1, 50 * TIB, 1), (49 * TIB, 50 * TIB, 1)], 50, 49, 83),  # 97 and 68: 82.5
}


@pytest.mark.parametrize(("uses", "least", "most", "by_line"), TABLE.values(), ids=TABLE)
def test_how_full(uses: list[tuple[int, int, int]], least: int, most: int, by_line: int) -> None:
    assert (mean(LEAST_ALLOCATED, uses), mean(MOST_ALLOCATED, uses), ratio(uses, SHAPE)) == (least, most, by_line)
    arrays: dict[str, Any] = {
        kind: [(np.array([u, 0], dtype=kind), np.array([c, c], dtype=kind), w) for u, c, w in uses]
        for kind in ("int64", "float64")
    }
    for kind, given in arrays.items():
        assert means(LEAST_ALLOCATED, given, 2)[0] == least, kind
        assert means(MOST_ALLOCATED, given, 2).tolist() == [most, 0], kind
    assert ratios(arrays["int64"], SHAPE, 2)[0] == by_line
    if len(uses) == 2 and all(c and w == 1 for _, c, w in uses):
        used, capacity = (np.array([[use[i]] for use in uses], dtype=np.float64) for i in (0, 1))
        before = used.copy(), capacity.copy()
        assert mean_of_two(LEAST_ALLOCATED, used, capacity).tolist() == [least]
        assert mean_of_two(MOST_ALLOCATED, used, capacity).tolist() == [most]
        assert (used == before[0]).all() and (capacity == before[1]).all()


BALANCE = {
    # capacity, used without the pod, requests: evenness without and with the pod, score
    "nothing used": ([4, 8], [0, 0], [2, 4], 100, 100, 75),
    "less even": ([4, 8], [0, 0], [4, 0], 100, 50, 50),
    "more even": ([4, 8], [4, 0], [0, 8], 50, 100, 100),
    "a little more even": ([4, 8], [2, 0], [0, 1], 75, 81, 78),  # parts of 1/2 and 1/8
    "rounded down": ([3, 3], [0, 0], [1, 0], 100, 83, 66),  # 50 + 33 // 2
    "more than the capacity counts as the capacity": ([4, 8], [9, 8], [1, 1], 100, 100, 75),
    "one resource": ([4, 0], [1, 0], [2, 0], 100, 100, 75),
    "no resource": ([0, 0], [0, 0], [1, 1], 100, 100, 75),
    "three resources": ([4, 8, 2], [4, 0, 0], [0, 0, 2], 52, 52, 75),  # deviation √(2/9) both times
    "three resources, one missing": ([4, 8, 0], [4, 0, 7], [0, 8, 1], 50, 100, 100),
}


@pytest.mark.parametrize(("capacity", "used", "requests", "without", "after", "score"), BALANCE.values(), ids=BALANCE)
def test_how_even(
    capacity: list[float], used: list[float], requests: list[float], without: int, after: int, score: int
) -> None:
    both = [u + r for u, r in zip(used, requests, strict=True)]
    assert (evenness(used, capacity), evenness(both, capacity)) == (without, after)
    assert balance(capacity, used, requests) == score
    if len(capacity) == 2 and all(capacity):
        have, one, other = (np.array(amounts, dtype=np.float64)[:, None] for amounts in (capacity, used, both))
        assert balances(evennesses(other, have), evennesses(one, have)).tolist() == [score]
        assert one[:, 0].tolist() == used and have[:, 0].tolist() == capacity


@pytest.mark.parametrize(
    ("shape", "utilization", "expected"),
    [
        (SHAPE, 0, 100),
        (SHAPE, 15, 50),
        (SHAPE, 20, 34),  # 100 − 66, rounded toward 0 as in Go
        (SHAPE, 30, 0),
        (SHAPE, 65, 35),
        (SHAPE, 101, 70),
        ([LinePoint(20, 5), LinePoint(40, 6)], 10, 50),
        ([], 50, 0),
    ],
)
def test_the_line_of_a_shape(shape: list[LinePoint], utilization: int, expected: int) -> None:
    assert on_line(shape, utilization) == expected
