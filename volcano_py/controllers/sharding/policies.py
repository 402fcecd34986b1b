"""The policies that choose a scheduler's nodes: filters, scores, selections. Volcano: the sharding policies.

A policy is constructed from its arguments. It can reject nodes (`accepts`), rank them (`score`, higher is better), and
limit the ranking (`select`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from volcano_py.api.names import WARMUP as WARMUP_LABEL

ALLOCATION_RATE = "allocation-rate"
WARMUP = "warmup"
NODE_LIMIT = "node-limit"

N = TypeVar("N")


class NodeView(NamedTuple):
    """The properties of a node that policies use."""

    name: str
    labels: Mapping[str, str] = {}
    cpu: float | None = None
    """Requested part of the capacity, 0 to 1; None while it is unknown."""
    memory: float | None = None


class Policy(NamedTuple):
    accepts: Callable[[NodeView], bool] | None = None
    score: Callable[[NodeView], float] | None = None
    select: Callable[[Sequence[Any]], Sequence[Any]] | None = None


def allocation_rate(arguments: Mapping[str, Any]) -> Policy:
    """Nodes within a range of CPU utilization, busier ones first. Without maxCPUUtil: idle nodes only."""
    low = round_2(_float(arguments, "minCPUUtil", 0.0))
    high = round_2(_float(arguments, "maxCPUUtil", 0.0))
    span = high - low

    def accepts(node: NodeView) -> bool:
        return node.cpu is not None and low <= round_2(node.cpu) <= high

    def score(node: NodeView) -> float:
        if node.cpu is None:
            return 0.0
        return 1.0 if span == 0 else min(1.0, max(0.0, (round_2(node.cpu) - low) / span))

    return Policy(accepts=accepts, score=score)


def warmup(arguments: Mapping[str, Any]) -> Policy:
    """Nodes with a label first."""
    label = str(arguments.get("warmupLabel") or WARMUP_LABEL)
    value = str(arguments.get("warmupLabelValue") or "true")
    return Policy(score=lambda node: 1.0 if node.labels.get(label) == value else 0.0)


def node_limit(arguments: Mapping[str, Any]) -> Policy:
    """At most maxNodes nodes (0: any number). minNodes is not guaranteed."""
    least, most = _int(arguments, "minNodes", 0), _int(arguments, "maxNodes", 0)
    if least < 0 or (0 < most < least):
        raise ValueError(f"minNodes {least} and maxNodes {most}: set 0 <= minNodes <= maxNodes")
    return Policy(select=lambda nodes: nodes[:most] if most > 0 else nodes)


POLICIES: dict[str, Callable[[Mapping[str, Any]], Policy]] = {
    ALLOCATION_RATE: allocation_rate,
    WARMUP: warmup,
    NODE_LIMIT: node_limit,
}
"""Name → constructor of the policy from its arguments; raises ValueError for invalid arguments."""


def round_2(value: float) -> float:
    """Two decimals, halves away from zero."""
    return math.copysign(math.floor(abs(value) * 100 + 0.5) / 100, value) if value else 0.0


def _float(arguments: Mapping[str, Any], name: str, default: float) -> float:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def _int(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = _float(arguments, name, default)
    if value != int(value):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    return int(value)
