"""Scores by the used part of a node. kube-scheduler: LeastAllocated, MostAllocated, RequestedToCapacityRatio,
BalancedAllocation.

Amounts are whole numbers, and those in use include the pod. Each formula has a form for one node, with numbers of
Python, and one for many nodes, because an operation on arrays costs thirty times as much as a plain one. Arrays are
int64 or float64 (exact below 64 TiB of memory). A use is (used, capacity, weight) of a resource; a node whose capacity
is 0 does not have the resource.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from volcano_py.scheduler.rules.arrays import Floats, Ints
from volcano_py.scheduler.rules.score_line import LinePoint, on_line

_HUNDRED, _HALF, _UNCHANGED, _ONE = (np.array(number) for number in (100.0, 0.5, 75.0, 1.0))
"""Arrays of dimension 0, which numpy does not have to convert."""


# ---- how full ---------------------------------------------------------------------------------------------------


class ResourceScore(NamedTuple):
    """The score by one resource, of the amount in use and the capacity, which is above 0: 0 to 100, rounded down."""

    of_node: Callable[[int, int], int]
    of_nodes: Callable[[Any, Any], Any]


def _free(used: int, capacity: int) -> int:
    return (capacity - used) * 100 // capacity if used <= capacity else 0


def _free_of_nodes(used: Any, capacity: Any) -> Any:
    part: Any = np.minimum(used, capacity)
    np.subtract(capacity, part, part)
    return _percent(part, capacity)


def _full(used: int, capacity: int) -> int:
    return min(used, capacity) * 100 // capacity


def _full_of_nodes(used: Any, capacity: Any) -> Any:
    return _percent(np.minimum(used, capacity), capacity)


def _percent(part: Any, capacity: Any) -> Any:
    """In place."""
    if part.dtype.kind != "f":
        return part * 100 // capacity
    np.multiply(part, _HUNDRED, part)
    np.divide(part, capacity, part)
    return np.floor(part, part)


LEAST_ALLOCATED = ResourceScore(_free, _free_of_nodes)
"""Nodes with more free capacity score higher."""
MOST_ALLOCATED = ResourceScore(_full, _full_of_nodes)
"""Nodes with less free capacity score higher."""


def mean(strategy: ResourceScore, uses: Sequence[tuple[int, int, int]]) -> int:
    """The weighted mean over the resources that the node has, rounded down."""
    total = weights = 0
    for used, capacity, weight in uses:
        if capacity > 0:
            total, weights = total + strategy.of_node(used, capacity) * weight, weights + weight
    return total // weights if weights else 0


def means(strategy: ResourceScore, uses: Sequence[tuple[Any, Any, int]], count: int) -> Any:
    """The same for `count` nodes."""
    total, weights = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for used, capacity, weight in uses:
        has = capacity > 0
        total = total + np.where(has, strategy.of_nodes(used, np.maximum(capacity, 1)) * weight, 0)
        weights += np.where(has, weight, 0)
    some = np.maximum(weights, 1)
    whole = total // some if total.dtype.kind != "f" else np.floor(total / some)
    return np.where(weights > 0, whole, 0)


def mean_of_two(strategy: ResourceScore, used: Floats, capacity: Floats) -> Floats:
    """The same for two resources of weight 1 that all nodes have: [resources x nodes]."""
    part = strategy.of_nodes(used, capacity)
    found: Floats = part[0] + part[1]
    np.multiply(found, _HALF, found)
    return np.floor(found, found)


def ratio(uses: Sequence[tuple[int, int, int]], shape: Sequence[LinePoint]) -> int:
    """The weighted mean by a piecewise linear function, rounded; resources with score 0 do not count."""
    total = weights = 0
    for used, capacity, weight in uses:
        score = on_line(shape, _full(used, capacity)) if capacity > 0 else 0
        if score > 0:
            total, weights = total + score * weight, weights + weight
    return (2 * total + weights) // (2 * weights) if weights else 0


def ratios(uses: Sequence[tuple[Ints, Ints, int]], shape: Sequence[LinePoint], count: int) -> Ints:
    """The same for `count` nodes."""
    line = np.array([on_line(shape, percent) for percent in range(101)], dtype=np.int64)
    total: Ints = np.zeros(count, dtype=np.int64)
    weights: Ints = np.zeros(count, dtype=np.int64)
    for used, capacity, weight in uses:
        score = line[_full_of_nodes(used, np.maximum(capacity, 1))]
        counts = (capacity > 0) & (score > 0)
        total += np.where(counts, score * weight, 0)
        weights += np.where(counts, weight, 0)
    some = np.maximum(weights, 1)
    found: Ints = np.where(weights > 0, (2 * total + some) // (2 * some), 0)
    return found


# ---- how even ---------------------------------------------------------------------------------------------------


def balance(capacity: Sequence[float], used: Sequence[float], requests: Sequence[float]) -> int:
    """Up to 50 if a pod makes a node less even, 75 if it changes nothing, up to 100 if it makes the node more even.
    `used`: without the pod."""
    with_pod = [u + r for u, r in zip(used, requests, strict=True)]
    return 50 + (50 + evenness(with_pod, capacity) - evenness(used, capacity)) // 2


def balances(with_pod: Floats, without: Floats) -> Floats:
    """The same for many nodes, from both results of `evennesses`; the first is overwritten."""
    np.subtract(with_pod, without, with_pod)
    np.multiply(with_pod, _HALF, with_pod)
    np.add(with_pod, _UNCHANGED, with_pod)
    return np.floor(with_pod, with_pod)


def evenness(used: Sequence[float], capacity: Sequence[float]) -> int:
    """How evenly the resources of a node are used: 100·(1 − standard deviation of the used parts), rounded down."""
    parts = [min(u / c, 1.0) for u, c in zip(used, capacity, strict=True) if c > 0]
    deviation = 0.0
    if len(parts) == 2:
        deviation = abs(parts[0] - parts[1]) / 2
    elif len(parts) > 2:
        average = sum(parts) / len(parts)
        deviation = math.sqrt(sum((p - average) * (p - average) for p in parts) / len(parts))
    return math.floor((1 - deviation) * 100)


def evennesses(used: Floats, capacity: Floats) -> Floats:
    """The same for two resources that all nodes have: [resources x nodes]."""
    part = np.minimum(used, capacity)
    np.divide(part, capacity, part)
    even: Floats = part[0] - part[1]
    np.abs(even, even)
    np.multiply(even, _HALF, even)
    np.subtract(_ONE, even, even)
    np.multiply(even, _HUNDRED, even)
    return np.floor(even, even)
