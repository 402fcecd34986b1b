"""What a queue lends to an entitled gang of another one, and at what price. Not in Volcano (deviation
whole-gang-reclaim)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import PODS


class QueueHolding(Protocol):
    """What a queue holds, deserves and is guaranteed."""

    allocated: Resource
    deserved: Resource
    guarantee: Resource


def stays_within(q: QueueHolding, requested: Resource, named: Collection[str] | None = None) -> bool:
    """Whether a queue with an amount holds no more than it deserves. `named`: only these resources count."""
    return all(
        q.allocated[d] + requested[d] <= q.deserved[d] + EPS
        for d in requested.names()
        if d != PODS and (named is None or d in named)
    )


def is_above(q: QueueHolding, resource: str) -> bool:
    """Whether a queue holds more of a resource than it deserves."""
    return q.allocated[resource] > q.deserved[resource] + EPS


def lends_any(q: QueueHolding, unit: Resource, short: Collection[str]) -> bool:
    """Whether a unit holds any of the short resources of which its queue holds more than it deserves."""
    return any(unit[d] > 0 and is_above(q, d) for d in short)


def keeps_guarantee(q: QueueHolding, unit: Resource) -> bool:
    """Whether a queue without a unit holds what it is guaranteed, of the resources of the unit."""
    return not any(unit[d] > 0 and q.allocated[d] - unit[d] < q.guarantee[d] - EPS for d in q.guarantee.names())


def price(q: QueueHolding, unit: Resource, total: Resource) -> float:
    """How much further below what it deserves a queue is without a unit, as a part of the cluster."""
    found = 0.0
    for d in unit.names():
        if d != PODS and total[d] > 0:
            below = q.deserved[d] - q.allocated[d]
            found += (max(below + unit[d], 0.0) - max(below, 0.0)) / total[d]
    return found
