"""Least, most and balanced allocation. kube-scheduler: NodeResourcesFit's scores, BalancedAllocation."""

from __future__ import annotations

import math

from tests.reference.kube.selectors import Pod
from tests.reference.node import Node
from tests.reference.request import kube_request
from tests.reference.resource import Resource

FIT = ("cpu", "memory")
BALANCED = ("cpu", "memory", "nvidia.com/gpu")


MOST_KNOWN = 20_000
_known: dict[tuple[int, bool], tuple[Pod, Resource]] = {}
"""Requests by the identity of a manifest, which no cycle changes; it is kept, so that no other has its identity."""


def _request(pod: Pod, non_zero: bool) -> Resource:
    """`kube_request`, once for each pod instead of once for each node."""
    key = id(pod), non_zero
    if key not in _known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = pod, kube_request(pod, non_zero)
    return _known[key][1]


def _requested(pod: Pod, pods: list[Pod], name: str, non_zero: bool) -> int:
    return int(sum(_request(p, non_zero).get(name) for p in [pod, *pods]))


def least(pod: Pod, node: Node, pods: list[Pod]) -> int:
    """The free part in percent after the placement, mean of cpu and memory."""
    parts = []
    for name in FIT:
        capacity = int(node.kube_allocatable.get(name))
        requested = _requested(pod, pods, name, non_zero=True)
        if capacity != 0:
            parts.append((capacity - requested) * 100 // capacity if requested <= capacity else 0)
    return sum(parts) // len(parts) if parts else 0


def most(pod: Pod, node: Node, pods: list[Pod]) -> int:
    parts = []
    for name in FIT:
        capacity = int(node.kube_allocatable.get(name))
        requested = _requested(pod, pods, name, non_zero=True)
        if capacity != 0:
            parts.append(min(requested, capacity) * 100 // capacity)
    return sum(parts) // len(parts) if parts else 0


def requests_nothing(pod: Pod) -> bool:
    """Whether balanced allocation has no score for this pod."""
    own = _request(pod, non_zero=False)
    return all(own.get(name) == 0 for name in BALANCED)


def balanced(pod: Pod, node: Node, pods: list[Pod]) -> int:
    """50 + (50 + with − without) / 2, from the balance of the node with and without the pod."""
    return 50 + (50 + _evenness(pod, node, [pod, *pods]) - _evenness(pod, node, pods)) // 2


def _evenness(pod: Pod, node: Node, pods: list[Pod]) -> int:
    own = _request(pod, non_zero=False)
    fractions = []
    for name in BALANCED:
        capacity = node.kube_allocatable.get(name)
        if name not in FIT and own.get(name) == 0:
            continue
        if capacity > 0:
            used = int(sum(_request(p, False).get(name) for p in pods))
            fractions.append(min(used / capacity, 1.0))
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = (fractions[0] + fractions[1] + fractions[2]) / 3
        squares = 0.0
        for f in fractions:
            squares += (f - mean) * (f - mean)
        deviation = math.sqrt(squares / 3)
    else:
        deviation = 0.0
    return int((1 - deviation) * 100.0)
